"""Fills the cache with the parts that a run needs, before it or in parallel.

Each part is fetched or built by its own process, two at a time, because they use the network and the cores in turns.
Builds end with the block that began them, however it ends, and leave no half entry behind (`building.cache`).
"""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final

from devcluster.building import progress
from devcluster.building.toolchain import BuildError
from devcluster.filling.parts import Part, find_missing
from devcluster.running.priority import lend_priority
from devcluster.running.processes import spawn

_AT_A_TIME: Final = 2
_SHOWN_LINES: Final = 25
_NICENESS: Final = 10
"""The niceness of a polite build: servers go first, and a busy machine still builds."""
_END_DEADLINE_S: Final = 20.0
_HURRY_INTERVAL_S: Final = 1.0


class Filling:
    """Parts that are being filled; `tell` gets the output of their processes, line by line."""

    def __init__(self, tell: Callable[[str], object], *, politely: bool) -> None:
        self._tell = tell
        self._prefix = ["nice", "-n", str(_NICENESS)] if politely and shutil.which("nice") else []
        self._pool = ThreadPoolExecutor(_AT_A_TIME, "filling")
        self._lock = threading.Lock()
        self._ended = False
        self._processes: set[subprocess.Popen[Any]] = set()
        self._futures: list[Future[None]] = []

    def begin(self, parts: Iterable[Part]) -> None:
        """Start to fill the missing ones of these parts."""
        self._futures += [self._pool.submit(self._fill, part) for part in find_missing(parts)]

    @property
    def is_done(self) -> bool:
        """True if no part is in progress, whether the parts succeeded or failed."""
        return all(future.done() for future in self._futures)

    def wait(self) -> None:
        """Wait until all parts are there. Raises BuildError with the last output of the first part that failed."""
        for future in self._futures:
            future.result()

    @contextmanager
    def hurry_builds(self) -> Iterator[None]:
        """Give polite builds our priority while the block waits for them."""
        self._hurry()
        with progress.every(_HURRY_INTERVAL_S, self._hurry):
            yield

    def end(self) -> None:
        """End the builds in progress, and return when they have tidied up."""
        with self._lock:
            self._ended = True
            running = list(self._processes)
        for process in running:
            process.terminate()
        for process in running:
            _wait_or_kill(process)
        self._pool.shutdown(cancel_futures=True)

    def _hurry(self) -> None:
        with self._lock:
            self._prefix = []
            running = list(self._processes)
        for process in running:
            lend_priority(process.pid)

    def _fill(self, part: Part) -> None:
        printed: deque[str] = deque(maxlen=_SHOWN_LINES)
        with self._start(part) as process:
            for line in map(str.rstrip, process.stdout or ()):
                printed.append(line)
                if not self._ended:
                    self._tell(line)
        with self._lock:
            self._processes.discard(process)
        if process.returncode != 0:
            raise BuildError(f"{part} could not be had:\n" + "\n".join(printed))

    def _start(self, part: Part) -> "subprocess.Popen[str]":
        with self._lock:
            command = [*self._prefix, sys.executable, "-m", "devcluster.filling.parts", part]
            if self._ended:
                raise BuildError(f"{part} was not begun: the run has ended")
            process = spawn(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            self._processes.add(process)
        return process


def _wait_or_kill(process: "subprocess.Popen[Any]") -> None:
    try:
        process.wait(_END_DEADLINE_S)
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise


@contextmanager
def fill_meanwhile(
    parts: Iterable[Part], *, tell: Callable[[str], object] = progress.say, politely: bool = False
) -> Iterator[Filling]:
    """Fill parts of the cache while the block runs; `politely`: at a low priority, so that the block goes first.

    Parts that are missing when the block ends are given up.
    """
    under_way = Filling(tell, politely=politely)
    try:
        under_way.begin(parts)
        yield under_way
    finally:
        under_way.end()


def fill_cache(parts: Iterable[Part] = tuple(Part), *, politely: bool = False) -> None:
    """Fetch and build the missing ones of these parts: minutes at first, nothing afterwards.

    `politely`: at a low priority, until another process waits for a part as well.

    Raises BuildError with the output of a failed part, such as which program to install.
    """
    if politely:
        os.nice(_NICENESS)
    with fill_meanwhile(parts) as under_way:
        under_way.wait()
