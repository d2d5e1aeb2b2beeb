"""The command line: refused arguments, exit codes, and loaded modules."""

import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from devcluster.clusters.kontroller import run_command
from kontroller.command_line import main

PYTHON_TYPE = re.compile(r"<(list|str|int|float|path|Path)\b")
NOBODY = "127.0.0.1:1"
EVERYTHING = {
    "drain": ("--bootstrap-server", NOBODY, "--broker-id", "1", "--timeout-ms", "1000"),
    "ready": ("--bootstrap-server", NOBODY, "--broker-id", "1", "--timeout-ms", "1"),
}


def commands(group: Any, *path: str) -> Iterator[tuple[str, ...]]:
    """Return every command, as the words of its call."""
    for name, command in group.commands.items():
        yield (*path, name)
        yield from commands(command, *path, name) if hasattr(command, "commands") else ()


@pytest.mark.parametrize("command", list(commands(get_command(main))), ids=" ".join)
def test_every_command_explains_itself_and_each_of_its_options(command: tuple[str, ...]) -> None:
    described: Any = get_command(main)
    for word in command:
        described = described.commands[word]
    result = CliRunner().invoke(main, [*command, "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.exception
    assert described.params or hasattr(described, "commands")
    assert all(option.opts[0] in result.output for option in described.params if not option.hidden)
    assert not PYTHON_TYPE.search(result.output)


def test_the_name_of_a_time_ends_with_its_unit() -> None:
    units = {"Milliseconds": "-ms", "Seconds": "-seconds", "Hours": "-hours", "Days": "-days"}
    found = []
    for command in commands(get_command(main)):
        described: Any = get_command(main)
        for word in command:
            described = described.commands[word]
        for option in described.params:
            unit = units.get((getattr(option, "help", None) or " ").split()[0])
            found += [] if unit is None else [(" ".join(command), option.opts[0], unit)]
    assert {unit for _, _, unit in found} == set(units.values())
    assert [each for each in found if not each[1].endswith(each[2])] == []


@pytest.mark.parametrize("command", EVERYTHING)
@pytest.mark.parametrize(
    ("option", "value", "told"),
    [
        ("--bootstrap-server", "kafka", "is not host:port"),
        ("--bootstrap-server", "", "is not host:port"),
        ("--bootstrap-server", "PLAINTEXT://kafka", "is not host:port"),
        ("--broker-id", "kafka-0", "valid int"),
        ("--broker-id", "-1", "0"),
        ("--broker-id", "2147483648", "2147483647"),
    ],
)
def test_what_cannot_be_meant_is_refused(command: str, option: str, value: str, told: str) -> None:
    result = CliRunner().invoke(main, [command, *EVERYTHING[command], option, value], env={"COLUMNS": "500"})
    assert result.exit_code == 2
    assert option in result.output
    assert told in result.output.replace("\n│ ", "")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("drain", "--timeout-ms"),
        ("drain", "--replicas-timeout-ms"),
        ("ready", "--timeout-ms"),
    ],
)
@pytest.mark.parametrize("value", ["-1", "soon", "1.5"])
def test_a_time_is_a_whole_number(command: str, option: str, value: str) -> None:
    result = CliRunner().invoke(main, [command, *EVERYTHING[command], option, value])
    assert (result.exit_code, option in result.output) == (2, True)


@pytest.mark.parametrize(("command", "option"), [("drain", "--timeout-ms"), ("ready", "--timeout-ms")])
def test_no_time_at_all_is_no_time(command: str, option: str) -> None:
    assert CliRunner().invoke(main, [command, *EVERYTHING[command], option, "0"]).exit_code == 2


def test_a_drain_without_a_cluster_ends_in_time_with_one_line_that_says_why(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ended = run_command("drain", *EVERYTHING["drain"], "--log-to", str(log))
    (line,) = ended.stderr.splitlines()
    assert ended.returncode == 1
    assert line.startswith("kontroller drain: broker 1 is not drained: no controller answered")
    assert line.endswith("; gave up after 1 s; nothing was changed")
    assert log.read_text().splitlines()[-1] == line


@pytest.mark.parametrize("kind", ["a folder", "a pipe that nobody reads", "nowhere"])
def test_a_log_that_cannot_be_written_hinders_nobody(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe that nobody reads":
        subprocess.run(["mkfifo", path], check=True)
        assert stat.S_ISFIFO(path.stat().st_mode)
    else:
        path = path / "not" / "there"
    ended = run_command("drain", *EVERYTHING["drain"], "--log-to", str(path))
    assert ended.returncode == 1
    assert "gave up after 1 s" in ended.stderr


def test_sigterm_ends_a_drain_at_once() -> None:
    command = [sys.executable, "-m", "kontroller", "drain", *EVERYTHING["drain"], "--timeout-ms", "60000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert "draining broker 1, for 60 s at most" in running.stdout.readline()
        running.terminate()
        assert running.wait(30) == -signal.SIGTERM


def test_a_broker_that_does_not_answer_is_not_ready() -> None:
    ended = run_command("ready", *EVERYTHING["ready"])
    assert ended.returncode == 1
    assert ended.stdout.startswith(f"broker 1 is not ready: {NOBODY} cannot be reached")


def test_a_command_that_waits_says_why_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kontroller.cli.administering.connection._TOLD_AFTER_S", 0)
    told = "trying again: 127.0.0.1:1 cannot be reached"
    for _ in range(2):
        result = CliRunner().invoke(main, ["topics", "list", "--bootstrap-server", NOBODY, "--timeout-ms", "900"])
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.count(told) == 1


def test_options_may_come_from_the_environment() -> None:
    environment = {"KONTROLLER_BOOTSTRAP_SERVER": "kafka", "KONTROLLER_BROKER_ID": "1"}
    result = CliRunner().invoke(main, ["ready"], env=environment)
    assert (result.exit_code, "is not host:port" in result.output.replace("\n", " ")) == (2, True)


def test_a_probe_loads_neither_the_operator_nor_the_controller() -> None:
    """It is started every few seconds beside every broker."""
    script = (
        "import sys, os\n"
        "sys.modules['hypothesis'] = None\n"  # kio imports it if it is installed, as it is for tests
        "from kontroller.command_line import main\n"
        "os._exit = lambda code: sys.exit(print(*sorted({name.split('.')[0] for name in sys.modules})))\n"
        f"main(['ready', *{EVERYTHING['ready']!r}])\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = ended.stdout.splitlines()[-1].split()
    assert "kio" in loaded
    assert not {"kazoo", "kopf", "kubernetes", "aiohttp", "structlog", "prometheus_client"} & set(loaded)


def test_each_wrong_setting_has_a_line_of_its_own() -> None:
    ended = CliRunner().invoke(main, ["history", "watch", "--topic", "a b", "--bootstrap-server", "kafka"])
    assert (ended.exit_code, ended.stderr.splitlines()) == (
        2,
        [
            "kontroller: --topic: 'a b' is not valid. Kafka topic that controllers write their journals to. Needs "
            "--bootstrap-server.",
            "kontroller: --bootstrap-server: 'kafka' is not valid. Brokers of the journal's topic: "
            "HOST:PORT[,HOST:PORT...].",
        ],
    )
