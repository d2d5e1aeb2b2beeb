"""Writes to an object: its status, its finalizer, and the events about it.

Nothing is written if nothing differs. The API server's answer is stored at once, so that the next plan is based on it.
"""

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final

import orjson
from pydantic import ValidationError

from controller_operator.kubernetes.object_api import ObjectApi, merge_patch
from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, Raw, StoredObject
from controller_operator.metrics import OperatorMetrics
from controller_operator.plans.outcome import FinalizerWish, Notice, Plan, Verdict, conditions
from controller_operator.plans.state_news import state_news
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.reconciling.wall_clock import Now
from controller_operator.resources.common import FINALIZER, ObjectMeta, Status
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason

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

    def find_delay_s(self, stored: StoredObject, plan: Plan[Status]) -> float:
        """Return the seconds until a status is written that only shows progress, or that will soon change again.

        A large status is written less often."""
        if plan.may_wait_s:
            return plan.may_wait_s
        if stored.resource is None or not _is_mere_progress(stored.resource.status, plan):
            return 0.0
        return max(0.0, self._next_progress_at.get(stored.uid, 0.0) - asyncio.get_running_loop().time())

    async def settle(self, stored: StoredObject, plan: Plan[Status]) -> StoredObject | None:
        """Write the plan's status and finalizer before its steps. Return None if that releases the object."""
        if plan.finalizer is FinalizerWish.HOLD:
            stored = await self.hold(stored)
        elif plan.finalizer is FinalizerWish.RELEASE:
            stored = await self.release(stored, plan.notices)
        if plan.finalizer is not FinalizerWish.KEEP_AS_IS and _is_going(stored):
            return None
        stored = await self._write_plan(stored, plan)
        for notice in plan.notices:
            await self._recorder.post(stored.raw, notice)
        return stored

    async def hold(self, stored: StoredObject) -> StoredObject:
        """Put the finalizer on the object."""
        return await self._set_finalizers(stored, (FINALIZER,))

    async def release(self, stored: StoredObject, notices: Iterable[Notice] = ()) -> StoredObject:
        """Report the reasons, and remove the finalizer from the object."""
        for notice in notices:
            await self._recorder.post(stored.raw, notice)
        return await self._set_finalizers(stored, ())

    async def _write_plan(self, stored: StoredObject, plan: Plan[Status]) -> StoredObject:
        patch = merge_patch(_status_of(stored), plan.status.dump_for_kubernetes())
        if patch and plan.is_progress:
            now = asyncio.get_running_loop().time()
            running = {uid: at for uid, at in self._next_progress_at.items() if at > now}
            pause_s = max(_LEAST_BETWEEN_PROGRESS_S, len(orjson.dumps(patch)) / _PROGRESS_BYTES_PER_S)
            self._next_progress_at = {**running, stored.uid: now + pause_s}
        return await self._patch_with_event(stored, plan.status, patch)

    async def write_status(self, stored: StoredObject, status: Status) -> StoredObject:
        """Write the differences of the status, if there are any."""
        return await self._patch_with_event(
            stored, status, merge_patch(_status_of(stored), status.dump_for_kubernetes())
        )

    async def write_unreadable(self, stored: StoredObject) -> StoredObject:
        """Report in the status that the object cannot be read. The rest may be another version's, so it stays."""
        message = f"this version of the operator cannot read {stored.error}: correct it, or run the version it is for"
        before = {name: value for name, value in _status_of(stored).items() if name in _SAID_OF_ALL}
        metadata = ObjectMeta.model_validate(stored.raw["metadata"])
        verdict = Verdict.make_stalled(Reason.INVALID_SPEC, message)
        said = conditions(verdict, _read_status(before), metadata, self._now().replace(microsecond=0))
        after = Status(observed_generation=metadata.generation, conditions=said).dump_for_kubernetes()
        stored = await self._patch_status(stored, merge_patch(before, after))
        await self._recorder.post(stored.raw, Notice(reason="InvalidSpec", message=message, is_warning=True))
        return stored

    async def _patch_with_event(self, stored: StoredObject, status: Status, patch: Raw) -> StoredObject:
        """Write a status. The event about a new state comes first: after a crash in between, the state is still new."""
        before = stored.resource.status if stored.resource is not None else Status()
        notice = state_news(stored.key.kind, before, status) if patch else None
        if notice is not None:
            await self._recorder.post(stored.raw, notice)
        return await self._patch_status(stored, patch)

    async def _patch_status(self, stored: StoredObject, patch: Raw) -> StoredObject:
        if not patch:
            return stored
        self._metrics.status_writes.labels(stored.key.kind).inc()
        return self.keep(await self._api.patch_status(stored.raw, patch))

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


def make_status(verdict: Verdict, resource: AnyResource, now: datetime) -> Status:
    """Return the status of an object with a new verdict and nothing else new."""
    said = conditions(verdict, resource.status, resource.metadata, now.replace(microsecond=0))
    kept = resource.status.next_steps if resource.is_paused else None
    gone = dict.fromkeys(resource.status.momentary)
    update = {"observed_generation": resource.metadata.generation, "conditions": said, "next_steps": kept, **gone}
    return resource.status.model_copy(update=update)


def _status_of(stored: StoredObject) -> Raw:
    return stored.raw.get("status") or {}


def _is_mere_progress(before: Status, plan: Plan[Status]) -> bool:
    """Return True if a plan does nothing, and its status differs only in numbers.

    A cluster that is no longer degraded counts as progress, so one that changes all the time is seldom written."""
    if not plan.is_progress or plan.steps or plan.notices or plan.finalizer is not FinalizerWish.KEEP_AS_IS:
        return False
    recovered = plan.status.condition(ConditionType.DEGRADED)
    waits = {ConditionType.DEGRADED} if recovered is not None and recovered.status is ConditionStatus.FALSE else set()
    words = [
        [(each.type, each.status, each.reason, each.observed_generation) for each in status.conditions
         if each.type not in waits]
        for status in (before, plan.status)
    ]  # fmt: skip
    return words[0] == words[1]


def _is_going(stored: StoredObject) -> bool:
    return stored.raw["metadata"].get("deletionTimestamp") is not None


def _read_status(status: Raw) -> Status:
    try:
        return Status.model_validate(status)
    except ValidationError:
        return Status()
