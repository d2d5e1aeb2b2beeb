"""Servers of several test runs wait for each other, and no run waits for ever."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devcluster.running.processes import wait_until
from devcluster.running.tokens import Hold, Tokens

_HOLD = """
import sys, time
from pathlib import Path
from devcluster.running.tokens import Tokens
hold = Tokens(Path(sys.argv[1]), 8).take(8)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


class Run:
    """One of several runs that share a folder; it waits for its first tokens."""

    def __init__(self, folder: Path, total: int = 8) -> None:
        self.said: list[str] = []
        self.tokens = Tokens(folder, total)
        self.tokens.wait_for_others(self.said.append)

    @contextmanager
    def wait_for(self, count: int) -> Iterator[list[Hold]]:
        """Ask for tokens during the block, and yield the list of them. They must be there when the block has ended."""
        got: list[Hold] = []
        thread = threading.Thread(target=lambda: got.append(self.tokens.take(count)), daemon=True)
        thread.start()
        wait_until(lambda: bool(self.said), "it says that it waits")
        yield got
        thread.join(30)
        assert got


def test_a_run_gets_what_fits_beside_the_others_without_waiting(folder: Path) -> None:
    first, second = Run(folder), Run(folder)
    first.tokens.take(5)
    second.tokens.take(3)
    assert first.said == second.said == []


def test_a_run_waits_until_its_tokens_are_given_back_and_says_once_whom_it_waits_for(folder: Path) -> None:
    first, second = Run(folder), Run(folder)
    hold = first.tokens.take(6)
    with second.wait_for(3) as got:
        assert not got
        hold.give_back()
    said = f"Waiting for other servers on this machine to end: process {os.getpid()} holds 6 of 8 tokens"
    assert second.said == [said]


def test_a_run_that_holds_tokens_gets_more_at_once(folder: Path) -> None:
    first, second = Run(folder), Run(folder)
    first.tokens.take(4)
    second.tokens.take(4)
    first.tokens.take(4)
    second.tokens.take(4)
    assert first.said == second.said == []


def test_a_run_waits_again_after_it_has_given_everything_back(folder: Path) -> None:
    first, second = Run(folder), Run(folder)
    with first.tokens.hold(8):
        pass
    hold = second.tokens.take(8)
    with first.wait_for(1):
        hold.give_back()


def test_a_request_for_more_than_there_are_waits_until_it_is_alone(folder: Path) -> None:
    first, second = Run(folder), Run(folder)
    hold = first.tokens.take(1)
    with second.wait_for(12) as got:
        assert not got
        hold.give_back()


def test_a_small_request_does_not_overtake_a_large_one(folder: Path) -> None:
    first, large, small = Run(folder), Run(folder), Run(folder)
    hold = first.tokens.take(4)
    with large.wait_for(6) as got, small.wait_for(3) as overtaking:
        assert not got
        assert not overtaking
        hold.give_back()
        wait_until(lambda: bool(got), "the large one has its tokens")
        assert not overtaking
        got[0].give_back()


def test_a_command_that_a_person_watches_does_not_wait_but_counts(folder: Path) -> None:
    demo, tests = Tokens(folder, 8), Run(folder)
    demo.take(8)
    hold = demo.take(2)
    with tests.wait_for(1) as got:
        hold.give_back()
        demo.take(1).give_back()
        assert not got
        for each in list(demo._own):
            each.give_back()


def test_the_hold_of_a_killed_process_vanishes(folder: Path) -> None:
    command = [sys.executable, "-c", _HOLD, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with Run(folder).wait_for(1) as got:
            assert not got
            holder.kill()
    assert len(list(folder.glob("*.hold"))) == 1


def test_a_child_does_not_keep_the_hold_of_its_parent(folder: Path) -> None:
    hold = Run(folder).tokens.take(8)
    with subprocess.Popen(["sleep", "600.5"]) as child:
        hold.give_back()
        Run(folder).tokens.take(8)
        child.kill()


def test_the_timer_of_a_test_stands_still_while_the_test_waits(folder: Path) -> None:
    first, second = Run(folder), Run(folder)
    hold = first.tokens.take(8)
    left: list[float] = []

    def note_and_end(text: str) -> None:
        left.append(signal.getitimer(signal.ITIMER_REAL)[0])
        threading.Timer(0.3, hold.give_back).start()

    second.tokens.wait_for_others(note_and_end)
    of_this_test = signal.setitimer(signal.ITIMER_REAL, 170)
    try:
        second.tokens.take(1)
        assert left == [0.0]
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 170
    finally:
        signal.setitimer(signal.ITIMER_REAL, *of_this_test)
