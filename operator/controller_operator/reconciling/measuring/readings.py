"""The readings of objects in the background: at most one of each object runs at a time."""

import asyncio
from dataclasses import dataclass
from typing import Generic, TypeVar

from controller_operator.kubernetes.object_store import Key


@dataclass(slots=True, kw_only=True)
class Measured:
    """The knowledge of one object. Times are those of the event loop."""

    uid: str
    begun_at_s: float
    """The begin of the last reading."""
    work: asyncio.Task[None] | None = None


M = TypeVar("M", bound=Measured)


class Readings(Generic[M]):
    """The objects that are read, by their keys. An object that was created again is another one."""

    def __init__(self) -> None:
        self._known: dict[Key, M] = {}

    def find(self, key: Key, uid: str) -> M | None:
        """Return the knowledge of an object, or None."""
        measured = self._known.get(key)
        return measured if measured is not None and measured.uid == uid else None

    def put(self, key: Key, measured: M) -> M:
        """Begin to know an object, in place of a former one of the same name. Return the knowledge."""
        self.forget(key)
        self._known[key] = measured
        return measured

    def forget(self, key: Key) -> None:
        """Drop an object, and end its reading."""
        measured = self._known.pop(key, None)
        if measured is not None and measured.work is not None:
            measured.work.cancel()

    async def close(self) -> None:
        """End all readings."""
        work = [each.work for each in self._known.values() if each.work is not None]
        for key in [*self._known]:
            self.forget(key)
        await asyncio.gather(*work, return_exceptions=True)
