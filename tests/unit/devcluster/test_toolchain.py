"""A build step says how far it is and why it failed, and an interruption ends all of it."""

import os
import signal
from pathlib import Path

import pytest

from devcluster.building.toolchain import BuildError, run
from devcluster.running.processes import wait_until


def script(text: str) -> list[str]:
    return ["sh", "-c", text]


def is_alive(pid: int) -> bool:
    """A zombie that nobody has waited for counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_what_a_step_prints_is_returned_and_its_progress_is_not_a_part_of_it() -> None:
    seen: list[str] = []

    def is_progress(line: str) -> bool:
        seen.append(line)
        return True

    assert (
        run(script("echo result; echo half >&2; echo whole >&2"), what="a step", is_progress=is_progress) == "result\n"
    )
    assert seen == ["half", "whole"]


def test_a_failed_step_says_which_it_was_and_what_it_printed_without_its_progress(tmp_path: Path) -> None:
    failing = script("echo out; echo 'some/package' >&2; echo broken >&2; exit 3")
    with pytest.raises(BuildError, match=r"(?s)^a step failed with exit status 3: sh.*\nout\nbroken$"):
        run(failing, what="a step", cwd=tmp_path, is_progress=lambda line: "/" in line)


@pytest.mark.parametrize("trap", ["", "trap '' INT; "], ids=["that listens", "that is deaf"])
def test_an_interruption_ends_a_step_and_all_that_it_started(
    interruptible: type[Exception], monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    monkeypatch.setattr("devcluster.building.toolchain._INTERRUPT_DEADLINE_S", 0.5)
    started: list[int] = []

    def is_progress(line: str) -> bool:
        started.extend(map(int, line.split()))
        os.kill(os.getpid(), signal.SIGUSR1)
        return True

    with pytest.raises(interruptible):
        run(script(f"{trap}sleep 600 & echo $$ $! >&2; wait; sleep 600"), what="a step", is_progress=is_progress)
    assert len(started) == 2
    wait_until(lambda: not any(map(is_alive, started)), "the step and what it started are gone")
