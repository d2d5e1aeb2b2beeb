"""The command `kontroller-broker`: its options, and its errors."""

import pytest
from typer.testing import CliRunner

from replica_broker.cli.command_line import main

DELETE_PARTITION = ("admin", "delete-partition", "--zookeeper", "zk:2181", "--topic", "t", "--partition", "0")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run",), "--zookeeper is missing"),
        (("run", "--id", "one"), "Invalid value for '--id'"),
        (("admin", "create-topic", "--zookeeper", "zk:2181", "--topic", "a/b"), "'a/b' is not a valid topic name"),
        ((*DELETE_PARTITION, "--properties", "/nowhere"), "--properties: "),
    ],
)
def test_errors_begin_with_the_name_of_the_command(arguments: tuple[str, ...], said: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    lines = result.stderr.splitlines()
    assert all(line.startswith("kontroller-broker: ") for line in lines)
    assert said in lines[0]


@pytest.mark.parametrize(("value", "is_refused"), [("0", True), ("soon", True), ("none", False), ("900", False)])
def test_an_interval_of_flushes_is_a_number_or_none(value: str, is_refused: bool) -> None:
    result = CliRunner().invoke(main, ["run", "--flush-interval-ms", value])
    assert "--zookeeper is missing" in result.stderr
    assert ("--flush-interval-ms: " in result.stderr) is is_refused
