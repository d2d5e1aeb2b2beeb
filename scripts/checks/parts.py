"""Runs the parts of a check in parallel, and reports the outcome and duration of each."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from devcluster.running.processes import spawn

_HEARTBEAT_S: Final = 30.0
_POLL_S: Final = 0.2
_END_DEADLINE_S: Final = 60.0
_SHOWN_LINES: Final = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One command. Its output goes to a file, and to the terminal after its end."""

    name: str
    command: Sequence[str]
    niceness: int = 0
    """Higher for parts that compute than for parts that wait for servers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The outcome of a part."""

    name: str
    exit_code: int
    seconds: float

    @property
    def has_passed(self) -> bool:
        return self.exit_code == 0


class _Running:
    def __init__(self, part: Part, log: Path) -> None:
        self.part = part
        self.log = log
        self.began = time.monotonic()
        with log.open("wb") as output:
            self.process: subprocess.Popen[Any] = spawn(
                ["nice", "-n", str(part.niceness), *part.command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        _share_niceness(self.process.pid, part.niceness)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def last_line(self) -> str:
        lines = self.log.read_text(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[:90]

    def end(self) -> None:
        """Interrupt the part, so that it ends its servers. Kill it if that takes too long."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_END_DEADLINE_S)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


def run_parts(parts: Iterable[Part], logs: Path) -> list[Ended]:
    """Run all parts in parallel. Return their outcomes in the order in which they ended.

    If this process is interrupted, the parts are interrupted too, so that no server is left running.
    """
    logs.mkdir(parents=True, exist_ok=True)
    ended: list[Ended] = []
    running: list[_Running] = []
    spoke = time.monotonic()
    try:
        running += (_Running(part, logs / f"{part.name}.log") for part in parts)
        while running:
            time.sleep(_POLL_S)
            for each in [each for each in running if each.process.poll() is not None]:
                running.remove(each)
                ended.append(_report(each))
            if running and time.monotonic() - spoke >= _HEARTBEAT_S:
                spoke = time.monotonic()
                for each in running:
                    say(f"... {each.part.name} {minutes(each.seconds)}  {each.last_line()}")
    finally:
        for each in running:
            each.end()
    return ended


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201


def minutes(seconds: float) -> str:
    """Return a duration such as `3:07`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def table(ended: Iterable[Ended]) -> str:
    """Return a line for each part with its outcome and duration."""
    return "\n".join(
        f"{'passed' if each.has_passed else 'FAILED':8} {minutes(each.seconds):>6}   {each.name}" for each in ended
    )


def python(*arguments: str) -> list[str]:
    """Return the command line that runs this Python."""
    return [sys.executable, *arguments]


def _report(part: _Running) -> Ended:
    ended = Ended(name=part.part.name, exit_code=part.process.wait(), seconds=part.seconds)
    said = part.log.read_text(errors="replace").rstrip().splitlines()
    shown = said[-_SHOWN_LINES:] if ended.has_passed else said
    say("\n".join([f"===== {ended.name}", *shown, table([ended]), ""]))
    return ended


def _share_niceness(pid: int, niceness: int) -> None:
    """Set the niceness of the part's session, because Linux may share cores among sessions first."""
    with suppress(OSError):
        Path(f"/proc/{pid}/autogroup").write_text(str(niceness))
