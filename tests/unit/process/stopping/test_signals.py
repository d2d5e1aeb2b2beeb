"""SIGTERM ends a process in order, even during its start, while nothing answers at its ZooKeeper's address."""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from controller_core.process.signals import run_until_signalled
from devcluster.running.processes import ManagedProcess, wait_until

NOBODY = "127.0.0.1:1"
PATIENT = (f"--zookeeper={NOBODY}", "--zookeeper-timeout-ms=3600000")
"""The start waits for ZooKeeper for an hour."""
LISTENING = ("--id=1000", "--listen=PLAINTEXT://127.0.0.1:9090")
COMMANDS = {
    "controller": ("kontroller", "controller", "run", *PATIENT, *LISTENING),
    "recorder": ("kontroller", "record", *PATIENT, "--journal-directory={folder}"),
    "broker": ("replica_broker", "run", *PATIENT, *LISTENING, "--log-directory={folder}"),
    "broker of design v2": ("replica_broker", "run", *PATIENT, *LISTENING, "--log-directory={folder}", "--design=v2"),
}


def handles_sigterm(pid: int) -> bool:
    """Return True if the process has a handler. Otherwise the kernel drops SIGTERM for a container's first process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return bool(int(status["SigCgt"], 16) & 1 << signal.SIGTERM - 1)


@pytest.mark.parametrize("name", COMMANDS)
def test_sigterm_during_the_start_ends_a_process_in_order(tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-m", *(word.format(folder=tmp_path / "data") for word in COMMANDS[name])]
    process = ManagedProcess(
        name, command, log_path=tmp_path / "process.log", ready=lambda: handles_sigterm(process.pid)
    )
    process.start()
    try:
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: not process.is_running, f"the {name} ends")
        assert process.exit_code == 0, process.log_tail()
        assert '"event":"stopped"' in process.log_tail()
    finally:
        process.kill()


async def test_a_second_signal_does_not_interrupt_the_cleanup(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers: dict[signal.Signals, Callable[[], None]] = {}
    monkeypatch.setattr(asyncio.get_running_loop(), "add_signal_handler", handlers.__setitem__)
    is_working, is_cleaning, may_end = asyncio.Event(), asyncio.Event(), asyncio.Event()
    ends: list[str] = []

    async def work() -> None:
        is_working.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        is_cleaning.set()
        await may_end.wait()
        ends.append("in order")

    running = asyncio.create_task(run_until_signalled(work()))
    await is_working.wait()
    handlers[signal.SIGTERM]()
    await is_cleaning.wait()
    handlers[signal.SIGINT]()
    may_end.set()
    await running
    assert ends == ["in order"]
