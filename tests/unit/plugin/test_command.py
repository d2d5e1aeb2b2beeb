"""The command `kubectl kontroller`: a usage error ends with 1, because 2 has another meaning."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from kontroller.plugin import command_line
from kontroller.plugin.command_line import commands, main, parse_duration

ROOT = Path(__file__).resolve().parents[3]
OPERATIONS = (ROOT / "docs/operations.md").read_text()
NAMED = sorted(set(re.findall(r"`kubectl kontroller (\w+)[^`]*`", OPERATIONS)))


@pytest.mark.parametrize(
    "arguments",
    [["status", "--surprise"], ["plan"], ["surprise"], [], ["top", "--limit", "0"], ["status", "-o", "xml"]],
)
def test_a_wrong_command_ends_with_1(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 1


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("2m", 120), ("1m30s", 90), ("1h", 3600), ("0.5s", 0.5)])
def test_a_duration_is_written_as_for_kubectl(text: str, seconds: float) -> None:
    assert parse_duration(text, "--timeout") == seconds


@pytest.mark.parametrize("text", ["30", "0s", "-1s", "", "soon", "1d", "30 s"])
def test_what_is_no_duration_ends_the_command(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["drain", "4", f"--timeout={text}"])
    said = capsys.readouterr().err
    assert (ended.value.code, "--timeout" in said, "such as 30s" in said) == (1, True, True)


def test_a_name_that_is_none_is_refused_before_anything_is_changed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main(["pause", "kt/orders"])
    assert (ended.value.code, "KUBECONFIG" in capsys.readouterr().err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "looked_at"),
    [
        (["-n", "kafka", "status"], ("kafka", None)),
        (["--namespace", "kafka", "--context", "prod", "status", "-n", "other"], ("other", "prod")),
        (["status"], (None, None)),
    ],
    ids=["before the command", "before and after it", "nowhere"],
)
def test_the_namespace_may_stand_before_the_command_too(
    arguments: list[str], looked_at: tuple[str | None, str | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def list_all(
        _kinds: object, namespace: str | None, _everywhere: bool, context: str | None
    ) -> tuple[list[object], str | None]:
        seen.append((namespace, context))
        return [], namespace

    monkeypatch.setattr(command_line, "_list_all", list_all)
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert (ended.value.code, seen) == (0, [looked_at])


def test_each_command_explains_itself() -> None:
    group: Any = get_command(commands)
    for name in group.commands:
        shown = CliRunner().invoke(commands, [name, "--help"])
        assert (shown.exit_code, "-n" in shown.output, "<list" in shown.output) == (0, True, False)


def test_the_operations_name_every_command_and_no_other() -> None:
    group: Any = get_command(commands)
    assert {*NAMED, "resume"} == set(group.commands)
