"""Bounds the number of servers on this machine, over all test runs of this user, in all checkouts.

A server costs tokens: a broker or a node of Kafka 4 one, an API server with its etcd two, Spark three, ZooKeeper and
our own processes none. Tests wait until their servers fit. Interactive commands, such as the demo, never wait, but
their tokens count. `KONTROLLER_TOKENS` sets the total; the default is four for each core.

A process that already holds tokens gets more at once: otherwise two such processes could wait for each other forever. A
request for more than the total runs alone. A hold is a locked file, so it ends with its process, however that ends.
"""

import fcntl
import functools
import os
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

BROKER: Final = 1
API_SERVER: Final = 2
SPARK: Final = 3

_FOR_A_CORE: Final = 4
_LOOK_S: Final = 0.2


class Hold:
    """Tokens that this process holds until it gives them back, or ends."""

    def __init__(self, path: Path, file: IO[str], holds: set["Hold"]) -> None:
        self._path, self._file, self._holds = path, file, holds
        holds.add(self)

    def give_back(self) -> None:
        """Give the tokens back. Harmless if that was done before."""
        self._holds.discard(self)
        self._file.close()
        self._path.unlink(missing_ok=True)


class Tokens:
    """The tokens of a folder, seen by one process."""

    def __init__(self, folder: Path, total: int) -> None:
        self._folder = folder
        self._total = total
        self._own: set[Hold] = set()
        self._taking = threading.Lock()
        self._say: Callable[[str], object] | None = None

    def wait_for_others(self, say: Callable[[str], object]) -> None:
        """Make this process wait for its first tokens from now on; `say` shows once which processes it waits for."""
        self._say = say

    def take(self, count: int) -> Hold:
        """Take tokens. Waits first if the process holds none, is set to wait, and the tokens are not free."""
        with self._taking:
            if self._own or self._say is None:
                return self._make(count)
            return self._take_in_turn(count, self._say)

    @contextmanager
    def hold(self, count: int) -> Iterator[None]:
        """Hold tokens while the block runs."""
        hold = self.take(count)
        try:
            yield
        finally:
            hold.give_back()

    def _take_in_turn(self, count: int, say: Callable[[str], object]) -> Hold:
        with self._file("queue") as queue:
            if _is_locked_by_us(queue) and (hold := self._take_what_fits(count)):
                return hold
            with _no_alarm():
                say(f"Waiting for other servers on this machine to end: {', '.join(self._holders()) or 'a queue'}")
                # The first in the queue waits for tokens, the others for their turn, so nobody is overtaken forever.
                fcntl.flock(queue, fcntl.LOCK_EX)
                while (hold := self._take_what_fits(count)) is None:
                    time.sleep(_LOOK_S)
                return hold

    def _take_what_fits(self, count: int) -> Hold | None:
        # A process that never waits may take tokens in between: it would have taken them anyway.
        held = sum(_count(path) for path in self._list_held())
        return None if held and held + count > self._total else self._make(count)

    def _make(self, count: int) -> Hold:
        # Lock the file before it gets the name of a hold: an unlocked hold belongs to a dead process.
        name = f"{count}-{os.getpid()}-{secrets.token_hex(4)}"
        file = self._file(f"{name}.new")
        fcntl.flock(file, fcntl.LOCK_EX)
        path = self._folder / f"{name}.hold"
        (self._folder / f"{name}.new").rename(path)
        return Hold(path, file, self._own)

    def _list_held(self) -> list[Path]:
        held = []
        for path in self._folder.glob("*.hold"):
            if _is_held(path):
                held.append(path)
            else:
                path.unlink(missing_ok=True)
        return held

    def _holders(self) -> list[str]:
        """Return a line about each process that holds tokens."""
        counts: dict[str, int] = {}
        for path in self._list_held():
            pid = path.name.split("-")[1]
            counts[pid] = counts.get(pid, 0) + _count(path)
        return [f"process {pid} holds {count} of {self._total} tokens" for pid, count in counts.items()]

    def _file(self, name: str) -> IO[str]:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        return (self._folder / name).open("w")


@functools.cache
def machine_tokens() -> Tokens:
    """Return the tokens that all runs of this user share, whatever their cache folder."""
    total = os.environ.get("KONTROLLER_TOKENS")
    folder = Path(tempfile.gettempdir()) / f"kontroller-tokens-{os.getuid()}"
    return Tokens(folder, int(total) if total else _FOR_A_CORE * len(os.sched_getaffinity(0)))


def _count(path: Path) -> int:
    return int(path.name.split("-")[0])


def _is_locked_by_us(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_held(path: Path) -> bool:
    try:
        with path.open() as file:
            # A shared lock: two processes that look at the same time must not take each other for a holder.
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


@contextmanager
def _no_alarm() -> Iterator[None]:
    """Stop the timer that ends a test which takes too long, and resume it afterwards."""
    left, interval = signal.setitimer(signal.ITIMER_REAL, 0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left, interval)
