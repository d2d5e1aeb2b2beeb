"""No process is left over, not even one that was only starting."""

import os
import signal
import subprocess
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from devcluster.running import processes
from devcluster.running.processes import ConditionTimeoutError, ManagedProcess, StartError, spawn, wait_until


def command_lines() -> list[str]:
    """Return the command lines of all processes, with a space after each word."""
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


def test_the_log_and_the_written_files_of_running_processes_show_progress(tmp_path: Path) -> None:
    log, written = tmp_path / "talker.log", tmp_path / "files"
    written.mkdir()
    process = ManagedProcess("talker", ["sleep", "600"], log_path=log, ready=lambda: True, writes_to=written)
    process.start()
    try:
        started = processes.progress()
        assert started == processes.progress()
        with log.open("a") as opened:
            opened.write("a line")
        logged = processes.progress()
        assert logged != started
        (written / "data").touch()
        assert processes.progress() != logged
    finally:
        process.kill()
    assert not [name for name, _ in processes.progress() if "talker" in name]


def test_a_wait_in_vain_says_what_for_and_the_last_progress(tmp_path: Path) -> None:
    process = ManagedProcess("mute", ["sleep", "600"], log_path=tmp_path / "mute.log", ready=lambda: True)
    process.start()
    try:
        with pytest.raises(ConditionTimeoutError, match=r"until it speaks: .* without progress for .*mute.log 0.*CPU"):
            wait_until(lambda: False, "it speaks", silence_s=0.2)
    finally:
        process.kill()


def test_a_process_that_is_never_ready_is_ended_and_its_silence_is_told(tmp_path: Path) -> None:
    log = tmp_path / "never.log"
    process = ManagedProcess("never", ["sleep", "600"], log_path=log, ready=lambda: False, start_silence_s=0.2)
    with pytest.raises(StartError, match=r"never was not ready after .* without progress"):
        process.start()
    assert not process.is_running
