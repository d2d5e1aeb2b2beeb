"""The budget of the mapped files, while they run."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from scripts.checks import __main__ as checks
from scripts.checks.mapping import Mapped
from scripts.checks.parts import Ended, Part

TOUCHED = Mapped(file="tests/real/test_x.py", reason="", rank=0)
SPARK = Mapped(file="tests/spark/test_y.py", reason="", rank=1)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that would have run."""
    found: list[Sequence[str]] = []

    def run(parts: Iterable[Part], logs: Path) -> list[Ended]:
        found.extend(part.command for part in parts)
        return []

    monkeypatch.setattr(checks, "run_parts", run)
    return found


def test_every_pass_ends_with_the_budget(commands: list[Sequence[str]]) -> None:
    began_s = time.monotonic()
    checks._run_mapped([TOUCHED, SPARK], 12)
    stops = [float(word.partition("=")[2]) for command in commands for word in command if word.startswith("--stop-at=")]
    assert len(stops) == len(commands) == 4
    assert {*stops} == {stops[0]}
    assert stops[0] >= began_s + 12 * 60


def test_a_pass_that_would_begin_after_the_budget_is_listed(
    commands: list[Sequence[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    checks._run_mapped([TOUCHED, SPARK], 0)
    assert commands == []
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  mapped-servers: tests/real/test_x.py",
        "  mapped-servers-2: tests/real/test_x.py",
        "  mapped-servers-3: tests/real/test_x.py",
        "  mapped-spark: tests/spark/test_y.py",
    ]
