"""When Python looks for garbage in cycles: between events and messages, and not among the state of the cluster.

A takeover makes a million objects that stay. Python's collector counts them and, each time that a quarter more have come,
looks at all of them anew: half as much work again as the takeover itself, and a stall of the event loop. A large message
is the same on a smaller scale; it is read by another thread, but while one thread looks for garbage all others stand
still. What an event or a message leaves behind is freed by reference counts as ever; what hangs in cycles waits for the
end. And what a term begins with is put aside afterwards (`gc.freeze`), so that later collections need not look at it,
until the term is over.
"""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

_LONGEST_PAUSE_S: Final = 10.0
"""Pauses that follow each other without a gap for longer have a search in between: each was meant to be short."""

_lock = Lock()
_pauses = 0
"""How many of those who want no search are under way, in whatever thread."""
_since_s = 0.0
"""When the first of them began, or the last search was."""


@contextmanager
def gc_paused() -> Iterator[None]:
    """No search for cycles meanwhile. Pauses of several tasks and threads may overlap: the last to end ends them all."""
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
    if is_overdue:
        gc.collect(1)


def freeze() -> None:
    """Everything that there is now stays; later searches pass over it."""
    gc.freeze()


def unfreeze() -> None:
    """What was frozen may be garbage from now on."""
    gc.unfreeze()
