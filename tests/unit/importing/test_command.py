"""The command `kontroller import`: refused arguments, and exit codes."""

import pytest
import yaml
from typer.testing import CliRunner

from kontroller.command_line import main
from tests.unit.importing.test_strimzi import ORDERS, change_orders

STDIN = ("import", "--from-strimzi", "-")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--cluster"),
        (("--cluster", "demo", "--without-kubernetes"), "--zookeeper"),
        (("--from-strimzi", "-", "--zookeeper", "zk:2181"), "--from-strimzi reads no cluster"),
        (("--from-strimzi", "-", "--replica-assignment"), "--from-strimzi reads no cluster"),
        (("--from-strimzi", "-", "--bootstrap-server", "kafka:9092"), "--from-strimzi reads no cluster"),
        (
            ("--cluster", "demo", "--zookeeper", "zk:2181", "--bootstrap-server", "kafka:9092"),
            "--zookeeper and --bootstrap-server exclude each other",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(main, ["import", *arguments])
    assert (result.exit_code, told in result.output) == (2, True), result.output


def test_strimzis_topics_come_from_standard_input() -> None:
    result = CliRunner().invoke(main, STDIN, input=yaml.safe_dump(ORDERS))
    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["spec"]["replicationFactor"] == 2
    assert result.stderr == ""


def test_one_that_cannot_be_said_ends_with_1_and_the_others_are_written() -> None:
    both = yaml.safe_dump_all([change_orders({"partitions": -1}), change_orders(name="b")])
    result = CliRunner().invoke(main, STDIN, input=both)
    assert result.exit_code == 1
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(result.stdout) if each] == ["b"]
    assert result.stderr.count("\n") == 1
    assert "topic orders has no KafkaTopic: its partitions are left to the brokers" in result.stderr


def test_what_is_no_yaml_ends_in_one_line() -> None:
    result = CliRunner().invoke(main, STDIN, input="{")
    assert result.exit_code == 1
    assert result.stderr.startswith("kontroller: ")
    assert result.stderr.count("\n") == 1
