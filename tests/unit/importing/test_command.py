"""The command `kontroller import`: refused arguments, and exit codes."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from kontroller.command_line import main

STDIN = ("import", "--from", "-")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--cluster"),
        (("--cluster", "demo", "--without-kubernetes"), "--zookeeper"),
        (("--from", "-", "--zookeeper", "zk:2181"), "--from reads no cluster"),
        (("--from", "-", "--replica-assignment"), "--from reads no cluster"),
        (("--cluster", "demo", "--default-partitions", "3"), "are for --from"),
        (("--from", "-", "--bootstrap-server", "kafka:9092"), "--from reads no cluster"),
        (
            ("--cluster", "demo", "--zookeeper", "zk:2181", "--bootstrap-server", "kafka:9092"),
            "--zookeeper and --bootstrap-server exclude each other",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(main, ["import", *arguments])
    assert (result.exit_code, told in result.output) == (2, True), result.output


def test_topics_come_from_standard_input_and_are_counted() -> None:
    result = CliRunner().invoke(main, STDIN, input=write_topic("orders"))
    assert result.exit_code == 0
    assert yaml.safe_load(result.stdout)["spec"]["replicationFactor"] == 2
    assert result.stderr == "kontroller import: 1 topics imported; left out: none\n"


def test_a_refused_topic_ends_with_1_and_the_others_are_written() -> None:
    both = f"{write_topic('orders', partitions=-1)}---\n{write_topic('b')}"
    result = CliRunner().invoke(main, STDIN, input=both)
    assert result.exit_code == 1
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(result.stdout) if each] == ["b"]
    refusal, count = result.stderr.splitlines()
    assert refusal.startswith("kontroller import: standard input:1: topic orders has no KafkaTopic: its partitions are")
    assert count.endswith("1 topics imported; left out: none")


def test_an_input_that_is_not_yaml_ends_with_its_line() -> None:
    result = CliRunner().invoke(main, STDIN, input="{")
    assert result.exit_code == 1
    assert result.stderr.startswith("kontroller import: standard input:2: is not YAML: ")


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (
            "apiVersion: kafka.jikkou.io/v1\nkind: KafkaTopicList\nmetadata: {labels: [a]}\n"
            "items: [{metadata: {name: a}, spec: {partitions: 1, replicas: 1}}]\n",
            "labels is no mapping",
        ),
        (f"a: {'[' * 3000}{']' * 3000}\n", "has more than 100 levels of lists and mappings"),
        (f"a: {'[' * 150}{']' * 150}\n", "has more than 100 levels of lists and mappings"),
        (f"{'[' * 150}{']' * 150}\n", "has more than 100 levels of lists and mappings"),
        (f"{'[' * 200_000}{']' * 200_000}\n", "has more than 100 levels of lists and mappings"),
        (
            '{"version": 4, "terraform_version": "1", "resources": [{"mode": "managed", "type": "kafka_topic", '
            '"name": "x", "instances": [{"attributes": {"name": "b\\ud800", "partitions": 1, "replication_factor": 1}}]}]}',
            "topic b\ufffd has no KafkaTopic",
        ),
    ],
)
def test_an_odd_document_costs_no_other_one(odd: str, told: str, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("odd", "good")]
    for file, text in zip(files, (odd, write_topic("good")), strict=True):
        file.write_text(text)
    sources = [argument for file in files for argument in ("--from", str(file))]
    result = CliRunner().invoke(main, ["import", "--cluster", "c", *sources])
    assert (result.exit_code, result.stderr.count(told)) == (1, 1), result.stderr
    assert "1 topics imported" in result.stderr
    (imported,) = (each for each in yaml.safe_load_all(result.stdout) if each)
    assert imported["metadata"]["name"] == "good"


def test_a_missing_file_is_a_wrong_command() -> None:
    result = CliRunner().invoke(main, ["import", "--from", "nowhere.yaml"])
    assert (result.exit_code, "nowhere.yaml" in result.stderr) == (2, True)


def write_topic(name: str, *, partitions: int = 3) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "kafka.strimzi.io/v1beta2",
            "kind": "KafkaTopic",
            "metadata": {"name": name, "labels": {"strimzi.io/cluster": "demo"}},
            "spec": {"partitions": partitions, "replicas": 2},
        }
    )
