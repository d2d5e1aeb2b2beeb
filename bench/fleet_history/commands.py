"""Runs the shipped command, and measures the processor time of each of its steps, including its Spark.

The command reports the begin and end of each step on standard error. All its processes are in its session, and their
processor time is read at each of these lines. Processes that end between two readings count with their last one.
"""

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from devcluster.building.progress import every

_TICKS_A_SECOND: Final = os.sysconf("SC_CLK_TCK")
_LOOK_INTERVAL_S: Final = 0.5
"""Short, so that little is missed of processes that end."""
_STEP_ENDED: Final = re.compile(r"(?P<step>.+): (done|failed) \(\d+ s\)")


class CommandFailed(Exception):
    """The command failed; the message has its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds by the clock and of the processors."""

    wall_s: float
    cpu_s: float
    steps_cpu_s: dict[str, float]
    said: str


@dataclass(slots=True)
class _Processors:
    """The processor time of a session of processes; ended processes count with their last reading."""

    session: int
    _seen: dict[int, int] = field(default_factory=dict)

    def used_s(self) -> float:
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            if int(fields[3]) == self.session:
                self._seen[int(stat.parent.name)] = int(fields[11]) + int(fields[12])
        return sum(self._seen.values()) / _TICKS_A_SECOND


def kontroller_history(*arguments: str) -> Took:
    """Run the command and measure it. Raises CommandFailed."""
    command = [sys.executable, "-m", "kontroller", "history", *arguments]
    began, steps, said = time.monotonic(), {}, []
    process = subprocess.Popen(  # noqa: S603  # this project's own command
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    processors, before_s = _Processors(process.pid), 0.0
    assert process.stdout is not None
    with process, every(_LOOK_INTERVAL_S, processors.used_s):
        for line in process.stdout:
            said.append(line)
            if ended := _STEP_ENDED.fullmatch(line.strip()):
                now_s = processors.used_s()
                steps[ended["step"]], before_s = now_s - before_s, now_s
    if process.returncode:
        raise CommandFailed(
            f"kontroller history {' '.join(arguments)} ended with {process.returncode}: {''.join(said)}"
        )
    wall_s = time.monotonic() - began
    return Took(wall_s=wall_s, cpu_s=processors.used_s(), steps_cpu_s=steps, said="".join(said))
