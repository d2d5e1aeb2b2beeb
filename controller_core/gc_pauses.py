"""Postpones Python's cyclic garbage collection to the time between events and messages.

A takeover creates a million objects that stay. Each time their number grows by a quarter, the collector scans all of
them: half as much work again as the takeover itself, and a stall of the event loop. A large message is the same on a
smaller scale; another thread reads it, but a collection stops all threads. Reference counts still free most garbage at
once; only cycles wait. After a takeover its state is set aside (`gc.freeze`), so that later collections skip it until
the term is over."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

_LONGEST_PAUSE_S: Final = 10.0
"""Seconds of pauses without a gap after which a collection happens in between. Each pause is meant to be short."""

_lock = Lock()
_pauses = 0
"""The number of pauses in progress, in all threads."""
_since_s = 0.0
"""The time when the first of them began, or when the last collection was."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection while the block runs. Pauses of tasks and threads may overlap; the last to end ends the
    pause."""
    _begin()
    try:
        yield
    finally:
        _end()


def _begin() -> None:
    global _pauses, _since_s
    with _lock:
        _pauses += 1
        if _pauses == 1:
            gc.disable()
            _since_s = time.monotonic()


def _end() -> None:
    global _pauses, _since_s
    with _lock:
        _pauses -= 1
        is_overdue = _pauses > 0 and time.monotonic() - _since_s > _LONGEST_PAUSE_S
        if is_overdue:
            _since_s = time.monotonic()
        if _pauses == 0:
            gc.enable()
    # Collect outside of the lock, and only the young generations: a full collection is what the pauses avoid.
    if is_overdue:
        gc.collect(1)


def freeze() -> None:
    """Exempt all present objects from later collections."""
    gc.freeze()


def unfreeze() -> None:
    """Make the frozen objects collectable again."""
    gc.unfreeze()
