"""The command `kontroller-broker`: its options, and its errors."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from controller_core.admin.authorizing.authorizer_properties import ACL_AUTHORIZER
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


RUN = ("run", "--zookeeper", "127.0.0.1:1", "--id", "1", "--listen", "PLAINTEXT://h:1", "--log-directory", "/nowhere")


@pytest.mark.parametrize("design", ["v2", "v3"])
@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ("authorizer.class.name=org.example.Own", "authorizer.class.name is org.example.Own, whose rules are unknown"),
        (
            f"authorizer.class.name={ACL_AUTHORIZER}\nprincipal.builder.class=a.B",
            "principal.builder.class is a.B, whose",
        ),
        (f"authorizer.class.name={ACL_AUTHORIZER}\nsuper.users=admin", "'admin' is not a principal"),
    ],
)
def test_an_authorization_that_cannot_be_applied_is_refused(
    tmp_path: Path, properties: str, said: str, design: str
) -> None:
    file = tmp_path / "server.properties"
    file.write_text(properties)
    result = CliRunner().invoke(main, [*RUN, "--design", design, "--properties", str(file)])
    assert result.exit_code == 2
    assert "kontroller-broker: --properties: " in result.stderr
    assert said in result.stderr


@pytest.mark.parametrize(("value", "is_refused"), [("0", True), ("soon", True), ("none", False), ("900", False)])
def test_an_interval_of_flushes_is_a_number_or_none(value: str, is_refused: bool) -> None:
    result = CliRunner().invoke(main, ["run", "--flush-interval-ms", value])
    assert "--zookeeper is missing" in result.stderr
    assert ("--flush-interval-ms: " in result.stderr) is is_refused
