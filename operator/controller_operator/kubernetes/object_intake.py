"""How the store comes to know the objects: by events and listings that somebody else sees, and by listings of its own.

A watcher (`watcher`) hands over what it sees. The events of one object come in order; those of several objects need not.
So an event counts only if nothing newer is known:

- An object that is gone never comes back under its uid. A late event about it is dropped.
- An object that was created under the name of an earlier one has a higher version. A late event of the earlier one is
  dropped.

A listing says which objects there are. What was known before the listing was asked for, and is not in it, is gone, also if
no event says so: a watcher that lists again after a 410 has missed deletions. What is created while the pages arrive stays.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from controller_operator.kubernetes.object_api import ObjectApi
from controller_operator.kubernetes.object_store import Key, ObjectStore, Raw, StoredObject, uid_of

DELETED: Final = "DELETED"
_TAKEN_AT_ONCE: Final = 50
_REMEMBERED: Final = 20_000
"""Uids of objects that are gone. An event about one of them is late by seconds at most."""

OnChange = Callable[[Sequence[StoredObject], Sequence[StoredObject]], Awaitable[None]]
"""Told what is new or changed, and what is gone, once the store has it."""


class Stream(NamedTuple):
    """The objects of a kind, in one namespace or (None) everywhere: what one watch is about."""

    kind: str
    namespace: str | None

    def __str__(self) -> str:
        return f"{self.kind} in {self.namespace}" if self.namespace else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """An event."""

    is_deletion: bool
    raw: Raw


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """The end of a listing."""

    stream: Stream
    uids: Set[str]
    known: Mapping[Key, str]
    """What was known when it was asked for."""


class ObjectIntake:
    """Feeds a store. All of it belongs to one event loop."""

    def __init__(self, store: ObjectStore, on_change: OnChange) -> None:
        self._store = store
        self._on_change = on_change
        self._handed: asyncio.Queue[_Seen | _Listed] = asyncio.Queue()
        self._gone: dict[str, None] = {}
        self._known: dict[Stream, dict[Key, str]] = {}
        """What was known when the listing that is under way was asked for."""
        self._unlisted: set[Stream] = set()
        self._unseen: set[str] = set()
        """Of the first listings, the uids that no event has shown yet."""
        self._has_all = asyncio.Event()

    def hand_event(self, type_: str | None, raw: Raw) -> None:
        """Takes over an event. The type is that of a watch, or None for an object of a listing."""
        self._handed.put_nowait(_Seen(is_deletion=type_ == DELETED, raw=raw))

    def begin_listing(self, stream: Stream) -> None:
        """Remembers what is known. Call it before a listing is asked for."""
        self._known[stream] = self._store.uids(stream.kind, stream.namespace)

    def end_listing(self, stream: Stream, uids: Set[str]) -> None:
        """Takes over which objects a listing showed. Each of them comes as an event, too, before or after."""
        self._handed.put_nowait(_Listed(stream=stream, uids=uids, known=self._known.pop(stream, {})))

    def expect(self, streams: Collection[Stream]) -> None:
        """Has `wait_for_all` wait for the listings of these streams."""
        self._unlisted = set(streams)

    async def wait_for_all(self) -> None:
        """Waits until the store has what the first listings showed."""
        await self._has_all.wait()

    async def run(self) -> None:
        """Feeds the store with what is handed over, for ever."""
        while True:
            for _ in range(_TAKEN_AT_ONCE):
                handed = await self._handed.get()
                if isinstance(handed, _Listed):
                    await self._take_listing(handed)
                else:
                    await self._take_event(handed)
                if not self._unlisted and not self._unseen:
                    self._has_all.set()
            await asyncio.sleep(0)  # an event that needs no waiting would let in nothing else

    async def list_all(self, api: ObjectApi, stream: Stream) -> None:
        """Compares the store with a listing of its own. Raises `ApiError`s."""
        known = self._store.uids(stream.kind, stream.namespace)
        present: set[str] = set()
        news: deque[bytes] = deque()
        async for page in api.pages(stream.kind, stream.namespace):
            present.update(map(uid_of, page.items))
            # As bytes: the objects of all pages as JSON would take several times the memory.
            news.extend(orjson.dumps(raw) for raw in page.items if self._store.is_news(raw))
        await self._remove_missing(known, present)
        while news:
            some = [orjson.loads(news.popleft()) for _ in range(min(len(news), _TAKEN_AT_ONCE))]
            taken = [self._store.put(raw) for raw in some if uid_of(raw) not in self._gone]
            await self._on_change([stored for stored in taken if stored is not None], ())
            await asyncio.sleep(0)

    async def read_again(self, api: ObjectApi, stream: Stream) -> None:
        """Takes every object as the API server shows it now, whatever version is known. Raises `ApiError`s."""
        async for page in api.pages(stream.kind, stream.namespace):
            taken = [self._store.put_again(raw) for raw in page.items if uid_of(raw) not in self._gone]
            await self._on_change([stored for stored in taken if stored is not None], ())

    async def _take_event(self, seen: _Seen) -> None:
        uid = uid_of(seen.raw)
        self._unseen.discard(uid)
        if seen.is_deletion:
            gone = StoredObject(seen.raw)
            self._bury(uid)
            self._store.remove(gone.key, uid)
            await self._on_change((), (gone,))
        elif uid in self._gone or self._store.has_later_namesake(seen.raw):
            return
        elif (stored := self._store.put(seen.raw)) is not None:
            await self._on_change((stored,), ())

    async def _take_listing(self, listed: _Listed) -> None:
        """What is gone is told first: nobody is to wait for an object that is not there any more."""
        await self._remove_missing(listed.known, listed.uids)
        if listed.stream in self._unlisted:
            self._unlisted.discard(listed.stream)
            seen = self._store.uids(listed.stream.kind, listed.stream.namespace).values()
            self._unseen |= listed.uids - set(seen) - self._gone.keys()

    async def _remove_missing(self, known: Mapping[Key, str], present: Set[str]) -> None:
        if gone := self._store.remove_missing(known, present):
            for each in gone:
                self._bury(each.uid)
            await self._on_change((), gone)

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > _REMEMBERED:
            del self._gone[next(iter(self._gone))]
