"""The progress of slow work, in a terminal and in a file."""

import io

import pytest
from rich.console import Console

from devcluster.building import progress


def show_two_stages() -> None:
    with progress.stages("The whole", 2) as advance:
        with progress.step("First"):
            pass
        advance()
        with progress.step("Second"):
            pass
        advance()


def test_a_file_gets_a_line_for_each_stage_up_to_100_percent(capsys: pytest.CaptureFixture[str]) -> None:
    show_two_stages()
    assert capsys.readouterr().err.splitlines() == [
        "First ...",
        "First: done (0 s)",
        "The whole: 50 %",
        "Second ...",
        "Second: done (0 s)",
        "The whole: 100 %",
    ]


@pytest.mark.parametrize(("error", "outcome"), [(KeyboardInterrupt, "interrupted"), (OSError, "failed")])
def test_a_step_that_does_not_end_says_why(
    error: type[BaseException], outcome: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(error), progress.step("First"):
        raise error
    assert capsys.readouterr().err.splitlines()[-1] == f"First: {outcome} (0 s)"


def test_a_terminal_keeps_the_outcomes_of_the_steps_and_a_full_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(progress, "_console", Console(file=terminal, force_terminal=True, width=100, color_system=None))
    show_two_stages()
    shown = terminal.getvalue()
    assert shown.index("First: done") < shown.index("Second: done")
    assert "100%" in [line for line in shown.splitlines() if "The whole" in line][-1]
