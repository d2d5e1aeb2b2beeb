"""Patience of waits: how long a server may be silent before a wait gives up.

A deadline by the clock also fails on a slow machine, although nothing is wrong. `Patience` therefore measures
*silence*: the time since a progress token last moved. A server that hangs exhausts it after `SILENCE_S`, and a slow one
does not. The machine's own delays are not silence:

- If more processes want to run than there are processors, time is divided by their ratio.
- A pause counts only for its intended length, and a look for a few seconds at most. So a wait only gives up after
several failed looks.
- A look at the condition may write to a server's log, so movement during a look is not progress.
"""

import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

SILENCE_S: Final = 45.0
"""Seconds without progress after which a wait gives up, unless it says otherwise. A healthy cluster may be silent for 30 s:
that long Kafka's brokers wait for an answer before they ask another node, and a session with ZooKeeper lasts."""
LONGEST_WAIT_S: Final = 600.0
"""Seconds by the clock after which a wait gives up in any case, because some servers write to their log without getting on.
A wait that allows more silence than this lasts as long as that."""
_SHORTEST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0
_PAUSES_FOR_A_LOOK: Final = 2
_LOOK_COUNTS_S: Final = 5.0

Progress = Sequence[tuple[str, int]]
"""The names and numbers that move while servers work, such as the size of each log."""


def processes_per_processor() -> float:
    """Return the number of other processes that want to run, for each processor; at least 1."""
    with suppress(OSError, ValueError, IndexError):
        running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
        return max(1.0, (running - 1) / (os.cpu_count() or 1))
    return 1.0


def cpu_pressure() -> str:
    """Return the kernel's measure of waiting for processors, or the load if the kernel lacks that measure."""
    for file in ("/proc/pressure/cpu", "/proc/loadavg"):
        with suppress(OSError, IndexError):
            return Path(file).read_text().splitlines()[0]
    return "unknown"


class Patience:
    """The patience of one wait. Call `pause` after each failed look, until it returns a reason to give up."""

    def __init__(
        self,
        silence_s: float,
        progress: Callable[[], Progress],
        *,
        longest_s: float | None = None,
        now_s: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        crowding: Callable[[], float] = processes_per_processor,
    ) -> None:
        self._limit_s, self._longest_s = silence_s, longest_s or max(LONGEST_WAIT_S, silence_s)
        self._progress, self._now_s, self._sleep, self._crowding = progress, now_s, sleep, crowding
        self._began_s = self._look_began_s = now_s()
        self._silent_s = 0.0

    def pause(self) -> str | None:
        """Sleep until the next look is due and return None, or return the reason to give up without sleeping."""
        look_s = self._now_s() - self._look_began_s
        before = self._progress()
        self._silent_s += min(look_s, _LOOK_COUNTS_S) / self._crowding()
        waited_s = self._now_s() - self._began_s
        if self._silent_s >= self._limit_s or waited_s >= self._longest_s:
            moved = ", ".join(f"{name} {value}" for name, value in before) or "nothing was watched"
            silent = f"without progress for {self._silent_s:.0f} s (of {self._limit_s:.0f})"
            return f"after {waited_s:.0f} s, {silent}; progress: {moved}; CPU pressure: {cpu_pressure()}"
        meant_s = pause_s(look_s)
        self._sleep(meant_s)
        self._silent_s = self._silent_s + meant_s / self._crowding() if self._progress() == before else 0.0
        self._look_began_s = self._now_s()
        return None


def pause_s(look_s: float) -> float:
    """Return the pause after a look of this length, so that looking takes at most a third of the time."""
    return min(max(_SHORTEST_PAUSE_S, _PAUSES_FOR_A_LOOK * look_s), _LONGEST_PAUSE_S)
