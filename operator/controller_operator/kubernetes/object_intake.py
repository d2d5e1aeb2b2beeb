"""Feeds the store with objects, from the events and listings of a watcher, and from its own listings.

A watcher (`watcher`) passes on its events. The events of one object come in order; those of several objects need not.
So an event is dropped if something newer is known:
- An object that is gone never returns under its uid.
- An object that was created under the name of an earlier one has a higher version than that one.
An object that was known before a listing was requested, and is not in it, is gone, even without an event: a watcher
that lists again after a 410 has missed deletions. An object that is created while the pages arrive stays.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from controller_operator.kubernetes.object_api import ObjectApi
from controller_operator.kubernetes.object_store import Key, ObjectStore, Raw, StoredObject, key_of, uid_of

DELETED: Final = "DELETED"
_TAKEN_AT_ONCE: Final = 50
_REMEMBERED: Final = 20_000
"""Uids of objects that are gone. A late event about one of them comes within seconds."""

OnChange = Callable[[Sequence[StoredObject], Sequence[StoredObject]], Awaitable[None]]
"""Called with the new or changed objects, and with the gone ones, once the store has them."""


class Stream(NamedTuple):
    """The subject of one watch: the objects of a kind, in one namespace or (None) everywhere."""

    kind: str
    namespace: str | None

    def has(self, key: Key) -> bool:
        """Return True if an object of this name belongs to the stream."""
        return key.kind == self.kind and self.namespace in (None, key.namespace)

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
    known: Collection[tuple[Key, str]]
    """The known objects when the listing was requested, with their uids."""


class ObjectIntake:
    """Feeds a store. It belongs to one event loop."""

    def __init__(self, store: ObjectStore, on_change: OnChange) -> None:
        self._store = store
        self._on_change = on_change
        self._handed: asyncio.Queue[_Seen | _Listed] = asyncio.Queue()
        self._waiting: deque[_Seen] = deque()
        """The accepted events that the store does not have yet."""
        self._gone: dict[str, None] = {}
        self._known: dict[Stream, Collection[tuple[Key, str]]] = {}
        """The known objects when the running listing was requested, with their uids."""
        self._unlisted: set[Stream] = set()
        self._unseen: set[str] = set()
        """The uids of the first listings that no event has shown yet."""
        self._has_all = asyncio.Event()

    def hand_event(self, type_: str | None, raw: Raw) -> None:
        """Accept an event. The type is that of a watch, or None for an object of a listing."""
        seen = _Seen(is_deletion=type_ == DELETED, raw=raw)
        self._waiting.append(seen)
        self._handed.put_nowait(seen)

    def begin_listing(self, stream: Stream) -> None:
        """Remember the known objects. Call it before a listing is requested."""
        known = self._store.uids(stream.kind, stream.namespace)
        # The objects of waiting events are also older than the listing.
        waiting = [(key_of(seen.raw), uid_of(seen.raw)) for seen in self._waiting if not seen.is_deletion]
        self._known[stream] = [*known.items(), *((key, uid) for key, uid in waiting if stream.has(key))]

    def end_listing(self, stream: Stream, uids: Set[str]) -> None:
        """Accept the uids of a listing. Each of its objects also comes as an event, before or after."""
        self._handed.put_nowait(_Listed(stream=stream, uids=uids, known=self._known.pop(stream, ())))

    def expect(self, streams: Collection[Stream]) -> None:
        """Set the streams whose first listings `wait_for_all` waits for."""
        self._unlisted = set(streams)

    async def wait_for_all(self) -> None:
        """Wait until the store has the objects of the first listings."""
        await self._has_all.wait()

    async def run(self) -> None:
        """Feed the store with the accepted events, for ever."""
        while True:
            for _ in range(_TAKEN_AT_ONCE):
                handed = await self._handed.get()
                if isinstance(handed, _Listed):
                    await self._take_listing(handed)
                else:
                    await self._take_event(handed)
                if not self._unlisted and not self._unseen:
                    self._has_all.set()
            await asyncio.sleep(0)  # events that need no waiting would otherwise block the loop

    async def list_all(self, api: ObjectApi, stream: Stream) -> None:
        """Compare the store with a new listing. Raises `ApiError`s."""
        known = self._store.uids(stream.kind, stream.namespace)
        present: set[str] = set()
        news: deque[bytes] = deque()
        async for page in api.pages(stream.kind, stream.namespace):
            present.update(map(uid_of, page.items))
            # As bytes, because the objects of all pages as JSON would take several times the memory.
            news.extend(orjson.dumps(raw) for raw in page.items if self._store.is_news(raw))
        await self._remove_missing(known.items(), present)
        while news:
            some = [orjson.loads(news.popleft()) for _ in range(min(len(news), _TAKEN_AT_ONCE))]
            taken = [self._store.put(raw) for raw in some if uid_of(raw) not in self._gone]
            await self._on_change([stored for stored in taken if stored is not None], ())
            await asyncio.sleep(0)

    async def read_again(self, api: ObjectApi, stream: Stream) -> None:
        """Store every object as the API server shows it now, whatever version is known. Raises `ApiError`s."""
        async for page in api.pages(stream.kind, stream.namespace):
            taken = [self._store.put_again(raw) for raw in page.items if uid_of(raw) not in self._gone]
            await self._on_change([stored for stored in taken if stored is not None], ())

    async def _take_event(self, seen: _Seen) -> None:
        self._waiting.popleft()
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
        """Report the gone objects first, so that nobody waits for an object that no longer exists."""
        await self._remove_missing(listed.known, listed.uids)
        if listed.stream in self._unlisted:
            self._unlisted.discard(listed.stream)
            seen = self._store.uids(listed.stream.kind, listed.stream.namespace).values()
            self._unseen |= listed.uids - set(seen) - self._gone.keys()

    async def _remove_missing(self, known: Collection[tuple[Key, str]], present: Set[str]) -> None:
        if gone := self._store.remove_missing(known, present):
            for each in gone:
                self._bury(each.uid)
            await self._on_change((), gone)

    def _bury(self, uid: str) -> None:
        self._gone[uid] = None
        if len(self._gone) > _REMEMBERED:
            # Dictionaries keep the order of insertion, so this is the oldest uid.
            del self._gone[next(iter(self._gone))]
