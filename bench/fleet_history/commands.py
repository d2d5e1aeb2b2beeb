"""Runs the shipped command, and says what each of its steps took of the processors, its Spark's among them.

The command says on standard error when a step begins and ends. All that it starts is in its session of processes, and what
the kernel counts for them is read at each of these lines; a process that ends between two counts as it was last seen.
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
"""So that little is missed of what ends."""
_STEP_ENDED: Final = re.compile(r"(?P<step>.+): (done|failed) \(\d+ s\)")


class CommandFailed(Exception):
    """The command ended with another code than 0; the message has what it said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Seconds by the clock and of the processors."""

    wall_s: float
    cpu_s: float
    steps_cpu_s: dict[str, float]
    said: str


@dataclass(slots=True)
class _Processors:
    """What a session of processes has used so far; those that ended as they were last seen."""

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
    """Raises CommandFailed."""
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
