"""The queue of objects to reconcile: each is in it at most once, never in two workers, and some are delayed.

It has two lanes. Changed objects take precedence over those of a relist, so that a user who changes a topic does not
wait for ten thousand unchanged objects. Every few turns the other lane is served, so that it makes progress too.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from controller_operator.kubernetes.object_store import Key

_UNHURRIED_EVERY: Final = 8


class WorkQueue:
    """A key that is added while it is being worked on is handed out again afterwards."""

    def __init__(self) -> None:
        self._waiting: OrderedDict[Key, None] = OrderedDict()
        self._unhurried: OrderedDict[Key, None] = OrderedDict()
        self._turn = 0
        self._taken: set[Key] = set()
        self._again: set[Key] = set()
        self._later: dict[Key, asyncio.TimerHandle] = {}
        self._filled = asyncio.Event()

    def __len__(self) -> int:
        return len(self._waiting) + len(self._unhurried)

    def add(self, keys: Iterable[Key]) -> None:
        """Hand these out as soon as there is a worker."""
        for key in keys:
            if key in self._taken:
                self._again.add(key)
            else:
                self._unhurried.pop(key, None)
                self._waiting.setdefault(key)
        if self._waiting:
            self._filled.set()

    def add_unhurried(self, keys: Iterable[Key]) -> None:
        """Hand these out when there is a worker and nothing else waits."""
        for key in keys:
            if key in self._taken:
                self._again.add(key)
            elif key not in self._waiting:
                self._unhurried.setdefault(key)
        if self._unhurried:
            self._filled.set()

    def add_later(self, key: Key, delay_s: float) -> None:
        """Hand this one out after a delay. The earliest of several times counts."""
        loop = asyncio.get_running_loop()
        known = self._later.get(key)
        if known is not None and known.when() <= loop.time() + delay_s:
            return
        if known is not None:
            known.cancel()
        self._later[key] = loop.call_later(delay_s, self._is_due, key)

    async def take(self) -> Key:
        """Wait for the next key. It belongs to the caller until `release`."""
        while not len(self):
            self._filled.clear()
            await self._filled.wait()
        self._turn = (self._turn + 1) % _UNHURRIED_EVERY
        # Every eighth turn serves the unhurried lane first, so that constant changes cannot starve it.
        lanes = (self._waiting, self._unhurried) if self._turn else (self._unhurried, self._waiting)
        key, _ = (lanes[0] or lanes[1]).popitem(last=False)
        self._taken.add(key)
        return key

    def release(self, key: Key) -> None:
        """End the work on a key."""
        self._taken.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add((key,))

    def close(self) -> None:
        """Forget the delayed keys."""
        for handle in self._later.values():
            handle.cancel()
        self._later.clear()

    def _is_due(self, key: Key) -> None:
        del self._later[key]
        self.add((key,))
