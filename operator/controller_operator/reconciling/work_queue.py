"""The objects that wait to be looked at: each at most once, never by two workers, and some only later.

They wait in two lanes. What changes goes before what is looked at because all are: nobody who changes a topic waits until
ten thousand others were found to be as they should. Of so many turns one is the other lane's, so that it gets on as well.
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
        """Hands these out as soon as there is a worker."""
        for key in keys:
            if key in self._taken:
                self._again.add(key)
            else:
                self._unhurried.pop(key, None)
                self._waiting.setdefault(key)
        if self._waiting:
            self._filled.set()

    def add_unhurried(self, keys: Iterable[Key]) -> None:
        """Hands these out when there is a worker that nothing else waits for."""
        for key in keys:
            if key in self._taken:
                self._again.add(key)
            elif key not in self._waiting:
                self._unhurried.setdefault(key)
        if self._unhurried:
            self._filled.set()

    def add_later(self, key: Key, delay_s: float) -> None:
        """Hands this one out after a time; of several times the earliest counts."""
        loop = asyncio.get_running_loop()
        known = self._later.get(key)
        if known is not None and known.when() <= loop.time() + delay_s:
            return
        if known is not None:
            known.cancel()
        self._later[key] = loop.call_later(delay_s, self._is_due, key)

    async def take(self) -> Key:
        """Waits for the next one. It is the caller's until `release`."""
        while not len(self):
            self._filled.clear()
            await self._filled.wait()
        self._turn = (self._turn + 1) % _UNHURRIED_EVERY
        lanes = (self._waiting, self._unhurried) if self._turn else (self._unhurried, self._waiting)
        key, _ = (lanes[0] or lanes[1]).popitem(last=False)
        self._taken.add(key)
        return key

    def release(self, key: Key) -> None:
        """The work on it is over."""
        self._taken.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add((key,))

    def close(self) -> None:
        """Forgets what was to come later."""
        for handle in self._later.values():
            handle.cancel()
        self._later.clear()

    def _is_due(self, key: Key) -> None:
        del self._later[key]
        self.add((key,))
