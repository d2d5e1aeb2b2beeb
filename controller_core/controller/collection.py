"""When Python looks for garbage in cycles: between events, and not among the state of the cluster.

A takeover makes a million objects that stay. Python's collector counts them and, each time that a quarter more have come,
looks at all of them anew: half as much work again as the takeover itself, and a stall of the event loop. What an event
leaves behind is freed by reference counts as ever; what hangs in cycles waits for the event's end. And what a term begins
with is put aside afterwards (`gc.freeze`), so that later collections need not look at it, until the term is over.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """No search for cycles meanwhile."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def set_aside() -> None:
    """Everything that there is now stays; later searches pass over it."""
    gc.freeze()


def take_back() -> None:
    """What was set aside may be garbage from now on."""
    gc.unfreeze()
