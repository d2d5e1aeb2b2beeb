"""Writes to an object: its status, its finalizer, and the events about it.

Nothing is written if nothing differs. The API server's answer is stored at once, so that the next plan is based on it.
"""

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

import orjson
from pydantic import ValidationError

from controller_operator.kubernetes.object_api import ObjectApi, merge_patch
from controller_operator.kubernetes.object_store import Key, ObjectStore, Raw, StoredObject
from controller_operator.metrics import OperatorMetrics
from controller_operator.plans.outcome import Notice, Verdict, conditions
from controller_operator.plans.state_news import state_news
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.reconciling.wall_clock import Now
from controller_operator.resources.common import FINALIZER, ObjectMeta, Status
from controller_operator.resources.conditions import Reason

_LEAST_BETWEEN_PROGRESS_S: Final = 1.0
_PROGRESS_BYTES_PER_S: Final = 10_000
"""Bytes per second for one object. A move of thousands of partitions has a status of 100 kB, which changes all the
time."""
_SAID_OF_ALL: Final = ("observedGeneration", "conditions")


class ObjectWriter:
    """Writes to the known versions of objects. Its methods raise `ApiError`s."""

    def __init__(
        self,
        store: ObjectStore,
        api: ObjectApi,
        recorder: EventRecorder,
        metrics: OperatorMetrics,
        tell: Callable[[Iterable[Key]], None],
        now: Now,
    ) -> None:
        """`tell` queues other objects that a change concerns."""
        self._store = store
        self._api = api
        self._recorder = recorder
        self._metrics = metrics
        self._tell = tell
        self._now = now
        self._next_progress_at: dict[str, float] = {}

    async def hold(self, stored: StoredObject) -> StoredObject:
        """Put the finalizer on the object."""
        return await self._set_finalizers(stored, (FINALIZER,))

    async def release(self, stored: StoredObject, notices: Iterable[Notice] = ()) -> StoredObject:
        """Report the reasons, and remove the finalizer from the object."""
        for notice in notices:
            await self._recorder.post(stored.raw, notice)
        return await self._set_finalizers(stored, ())

    async def write_status(self, stored: StoredObject, status: Status, *, is_progress: bool = False) -> StoredObject:
        """Write the differences of the status, if there are any. After mere progress the next one has to wait.

        The event about a new state comes first: after a crash in between, the state is still new."""
        patch = merge_patch(_status_of(stored), status.dump_for_kubernetes())
        if not patch:
            return stored
        if is_progress:
            self._delay_progress(stored, patch)
        before = stored.resource.status if stored.resource is not None else Status()
        if (notice := state_news(stored.key.kind, before, status)) is not None:
            await self._recorder.post(stored.raw, notice)
        self._metrics.status_writes.labels(stored.key.kind).inc()
        return self.keep(await self._api.patch_status(stored.raw, patch))

    def find_progress_delay_s(self, stored: StoredObject) -> float:
        """Return the seconds until mere progress of the object may be written."""
        return max(0.0, self._next_progress_at.get(stored.uid, 0.0) - asyncio.get_running_loop().time())

    def _delay_progress(self, stored: StoredObject, patch: Raw) -> None:
        """Delay the next progress. A large status is written less often."""
        now = asyncio.get_running_loop().time()
        running = {uid: at for uid, at in self._next_progress_at.items() if at > now}
        pause_s = max(_LEAST_BETWEEN_PROGRESS_S, len(orjson.dumps(patch)) / _PROGRESS_BYTES_PER_S)
        self._next_progress_at = {**running, stored.uid: now + pause_s}

    async def write_unreadable(self, stored: StoredObject, situation: str = "") -> StoredObject:
        """Report in the status that the object cannot be read, and its situation. The rest may be another version's, so
        it stays."""
        message = f"this version of the operator cannot read {stored.error}: correct it, or run the version it is for"
        message = f"{situation} Also, {message}" if situation else message
        before = {name: value for name, value in _status_of(stored).items() if name in _SAID_OF_ALL}
        metadata = ObjectMeta.model_validate(stored.raw["metadata"])
        verdict = Verdict.make_stalled(Reason.INVALID_SPEC, message)
        said = conditions(verdict, _read_status(before), metadata, self._now().replace(microsecond=0))
        after = Status(observed_generation=metadata.generation, conditions=said).dump_for_kubernetes()
        if patch := merge_patch(before, after):
            self._metrics.status_writes.labels(stored.key.kind).inc()
            stored = self.keep(await self._api.patch_status(stored.raw, patch))
        await self._recorder.post(stored.raw, Notice(reason="InvalidSpec", message=message, is_warning=True))
        return stored

    async def _set_finalizers(self, stored: StoredObject, ours: Iterable[str]) -> StoredObject:
        others = [each for each in stored.raw["metadata"].get("finalizers", []) if each != FINALIZER]
        return self.keep(await self._api.set_finalizers(stored.raw, [*others, *ours]))

    def keep(self, raw: Raw) -> StoredObject:
        """Store the API server's answer about an object, unless the watch was faster.

        The watch then brings nothing new, so its owners and the other claimants of its topic are notified here."""
        kept = self._store.update(raw)
        claimants = self._store.claimants(kept.claim.topic_name) if kept.claim is not None else set()
        self._tell([*kept.owner_keys, *(claimants - {kept.key})])
        return kept

    def keep_marked(self, raw: Raw) -> None:
        """Store an object that was just marked for deletion, and queue it."""
        self._tell([self._store.update(raw).key])

    def keep_created(self, raw: Raw) -> None:
        """Store an object that was just created, and queue it."""
        created = self._store.put(raw)
        if created is not None:
            self._tell([created.key, *created.owner_keys])


def _status_of(stored: StoredObject) -> Raw:
    return stored.raw.get("status") or {}


def _read_status(status: Raw) -> Status:
    try:
        return Status.model_validate(status)
    except ValidationError:
        return Status()
