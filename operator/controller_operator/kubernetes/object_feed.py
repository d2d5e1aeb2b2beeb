"""How the store comes to know the objects of one kind: a listing, then every change after it, in order.

Listing and watching take turns in one task, so that nothing else feeds the store but the answers to the operator's own
writes: a watch begins at the version of the listing before it, goes on at the last version that it saw (bookmarks
move that on where nothing changes), and where that is too old for the API server everything is listed again.

A listing removes only what was known before it was asked for and is not in it: it reads the newest state there was then,
and no object that is gone ever comes back under its uid. So what is created while the pages arrive stays. Of each page only
what is news is kept, as bytes, until the last one is there.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import orjson
import structlog

from controller_operator.kubernetes.object_api import (
    ApiError,
    ApiRefused,
    Change,
    ObjectApi,
    ObjectGone,
    VersionExpired,
)
from controller_operator.kubernetes.object_store import ObjectStore, StoredObject, uid_of

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_BETWEEN_WATCHES_S: Final = 0.1
_TAKEN_AT_ONCE: Final = 50
_log = structlog.get_logger(__name__)

OnChange = Callable[[Sequence[StoredObject], Sequence[StoredObject]], Awaitable[None]]
"""Told what is new or changed, and what is gone, once the store has it."""


class ObjectFeed:
    """Feeds a store with the objects of a kind, in one namespace or (None) everywhere."""

    def __init__(
        self,
        api: ObjectApi,
        store: ObjectStore,
        kind: str,
        namespace: str | None,
        on_change: OnChange,
        *,
        relist_interval_s: float,
    ) -> None:
        """`relist_interval_s` after a listing there is another one, whatever the watch said."""
        self._api = api
        self._store = store
        self.kind = kind
        self._namespace = namespace
        self._on_change = on_change
        self._relist_interval_s = relist_interval_s
        self._version: str | None = None
        self._list_again_at = 0.0
        self._pause_s = _FIRST_PAUSE_S
        self.trouble: str | None = f"{kind} objects were not listed yet"
        """Why the store may not show the objects as they are; None where it does."""

    async def begin(self) -> None:
        """Lists the objects, as soon as that can be done. Raises `ApiRefused` where the rights for it are missing."""
        while self._version is None:
            try:
                await self._list()
            except ApiRefused:
                raise
            except ApiError as error:
                await self._pause(error)

    async def read_again(self) -> None:
        """Takes every object as the API server shows it now, whatever version is known. Raises `ApiError`s."""
        async for page in self._api.pages(self.kind, self._namespace):
            taken = [self._store.put_again(raw) for raw in page.items]
            await self._on_change([stored for stored in taken if stored is not None], ())

    async def run(self) -> None:
        """Keeps the store current, for ever."""
        while True:
            try:
                if self._version is None:
                    await self._list()
                await self._follow()
            except ApiError as error:
                await self._pause(error)
            finally:
                self._version = None

    async def _list(self) -> None:
        """What is gone is told first, as nobody is to wait for an object that is not there any more."""
        known = self._store.uids(self.kind, self._namespace)
        present: set[str] = set()
        news: deque[bytes] = deque()
        version = ""
        async for page in self._api.pages(self.kind, self._namespace):
            present.update(map(uid_of, page.items))
            news.extend(orjson.dumps(raw) for raw in page.items if self._store.is_news(raw))
            version = page.version
        self._version = version
        self._list_again_at = asyncio.get_running_loop().time() + self._relist_interval_s
        self._is_well()
        if gone := self._store.remove_missing(known, present):
            await self._on_change((), gone)
        while news:
            await self._take_listed([news.popleft() for _ in range(min(len(news), _TAKEN_AT_ONCE))])

    async def _take_listed(self, documents: Sequence[bytes]) -> None:
        """Some of a listing, as their models are large, and others want their turn."""
        taken = [self._store.put(orjson.loads(each)) for each in documents]
        await self._on_change([stored for stored in taken if stored is not None], ())
        await asyncio.sleep(0)

    async def _follow(self) -> None:
        """Watches from the version that is known until it is time to list again, or the version is too old."""
        loop = asyncio.get_running_loop()
        while loop.time() < self._list_again_at:
            assert self._version is not None
            try:
                async with self._api.watch(self.kind, self._namespace, self._version) as changes:
                    self._is_well()
                    async for change in changes:
                        await self._take(change)
                        self._version = change.version
                await asyncio.sleep(_BETWEEN_WATCHES_S)
            except VersionExpired as error:
                _log.info("watch is too old: listing again", kind=self.kind, error=str(error))
                return
            except ObjectGone:
                raise
            except ApiError as error:
                await self._pause(error)

    async def _take(self, change: Change) -> None:
        if change.type == "BOOKMARK":
            return
        if change.type == "DELETED":
            gone = StoredObject(change.raw)
            self._store.remove(gone.key, gone.uid)
            await self._on_change((), (gone,))
        elif (stored := self._store.put(change.raw)) is not None:
            await self._on_change((stored,), ())

    def _is_well(self) -> None:
        self._pause_s = _FIRST_PAUSE_S
        self.trouble = None

    async def _pause(self, error: ApiError) -> None:
        """The same trouble is logged once."""
        what = "no such kind: are the CustomResourceDefinitions installed?" if isinstance(error, ObjectGone) else ""
        trouble = f"{self.kind}: {what or 'the API server does not answer as it should'} ({error})"
        if trouble != self.trouble:
            _log.warning("objects out of sight", trouble=trouble)
        self.trouble = trouble
        await asyncio.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
