"""A watcher over the API server in memory that works like kopf: it lists, watches from there on, and lists again after
a 410 without naming deleted objects."""

import asyncio
from collections.abc import AsyncIterator, Collection
from typing import Any, NoReturn

from controller_operator.kubernetes.object_api import ApiError, ObjectGone, VersionExpired
from controller_operator.kubernetes.object_intake import ObjectIntake, Stream
from controller_operator.kubernetes.object_store import uid_of
from tests.unit.operator.simulated_api import Change

_BETWEEN_WATCHES_S = 0.1


class SimulatedWatcher:
    """A `Watcher`. The API server is a `SimulatedApiServer`, or something between that and the operator."""

    def __init__(self, api: Any, *, pause_s: float = 0.5) -> None:
        self._api = api
        self._pause_s = pause_s
        self._tasks: list[asyncio.Task[None]] = []
        self._troubles: dict[Stream, str] = {}

    @property
    def trouble(self) -> str | None:
        return "; ".join(self._troubles.values()) or None

    async def start(self, intake: ObjectIntake, streams: Collection[Stream]) -> None:
        self._tasks = [asyncio.create_task(self._watch(intake, stream)) for stream in streams]

    async def keep(self) -> NoReturn:
        await asyncio.Event().wait()
        raise AssertionError("it waits for ever")

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watch(self, intake: ObjectIntake, stream: Stream) -> None:
        version: str | None = None
        while True:
            try:
                version = version or await self._list(intake, stream)
                async for change in self._changes(stream, version):
                    if change.type != "BOOKMARK":
                        intake.hand_event(change.type, change.raw)
                    version = change.version
            except VersionExpired:
                version = None
            except ObjectGone as error:
                self._troubles[stream] = f"{stream.kind}: are the CustomResourceDefinitions installed? ({error})"
                version = None
                await asyncio.sleep(self._pause_s)
            except ApiError as error:
                self._troubles[stream] = f"{stream}: {error}"
                await asyncio.sleep(self._pause_s)
            else:
                await asyncio.sleep(min(_BETWEEN_WATCHES_S, self._pause_s))

    async def _list(self, intake: ObjectIntake, stream: Stream) -> str:
        intake.begin_listing(stream)
        uids: set[str] = set()
        version = ""
        async for page in self._api.pages(*stream):
            uids.update(map(uid_of, page.items))
            for raw in page.items:
                intake.hand_event(None, raw)
            version = page.version
        intake.end_listing(stream, uids)
        self._troubles.pop(stream, None)
        return version

    async def _changes(self, stream: Stream, version: str) -> AsyncIterator[Change]:
        async with self._api.watch(*stream, version) as changes:
            self._troubles.pop(stream, None)
            async for change in changes:
                yield change
