"""The command `kontroller-broker`: its errors."""

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
    (line,) = result.stderr.splitlines()
    assert line.startswith("kontroller-broker: ")
    assert said in line
