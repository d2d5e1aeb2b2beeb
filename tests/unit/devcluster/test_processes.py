"""Nothing that was started is left over, not even what was only starting."""

import os
import signal
import subprocess
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from devcluster.running import processes
from devcluster.running.processes import pause_s, spawn, wait_until


def command_lines() -> list[str]:
    """Those of all processes, with a space after each word."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found.append(path.read_text().replace("\0", " "))
    return found


def test_what_was_starting_when_its_starter_was_interrupted_is_ended(interruptible: type[Exception]) -> None:
    def interrupt_who_waits() -> "subprocess.Popen[Any]":
        wait_until(lambda: not processes._spawn_requests.empty(), "the next one waits for its start")
        os.kill(os.getpid(), signal.SIGUSR1)
        return subprocess.Popen(["true"])

    before: Future[subprocess.Popen[Any]] = Future()
    processes._ensure_spawner()
    processes._spawn_requests.put((interrupt_who_waits, before))
    with pytest.raises(interruptible):
        spawn(["sleep", "600.25"])
    spawn(["true"]).wait()  # starts are in turn: the one that was given up is over
    before.result().wait()
    assert not any(line.endswith("sleep 600.25 ") for line in command_lines())


def test_who_waits_looks_for_a_third_of_the_time_at_most_and_not_too_rarely() -> None:
    assert pause_s(0.0) == pause_s(0.001)
    assert pause_s(0.4) == pytest.approx(0.8)
    assert pause_s(60.0) == pause_s(1.0) == pytest.approx(2.0)
