"""What is written to an object: its status, its finalizer, and the events about it.

Nothing is written where nothing differs. What the API server answers is kept at once, so that the next plan is made over
it.
"""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from controller_operator.kubernetes.object_api import ObjectApi, merge_patch
from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, Raw, StoredObject
from controller_operator.metrics import OperatorMetrics
from controller_operator.plans.outcome import FinalizerWish, Plan, Verdict, conditions
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.resources.common import FINALIZER, Status


class ObjectWriter:
    """Writes to objects, over the versions that are known of them. Its methods raise `ApiError`s."""

    def __init__(
        self,
        store: ObjectStore,
        api: ObjectApi,
        recorder: EventRecorder,
        metrics: OperatorMetrics,
        tell: Callable[[Iterable[Key]], None],
    ) -> None:
        """`tell` has other objects looked at that one's change concerns."""
        self._store = store
        self._api = api
        self._recorder = recorder
        self._metrics = metrics
        self._tell = tell

    async def settle(self, stored: StoredObject, plan: Plan[Status]) -> StoredObject | None:
        """Writes down what the plan says before anything is done; None where the object is let go with that."""
        if plan.finalizer is not FinalizerWish.KEEP_AS_IS:
            stored = await self.settle_finalizer(stored, plan)
            if stored.resource is None or stored.resource.metadata.deletion_timestamp is not None:
                return None
        stored = await self.write_status(stored, plan.status)
        for notice in plan.notices:
            await self._recorder.post(stored.raw, notice)
        return stored

    async def settle_finalizer(self, stored: StoredObject, plan: Plan[Status]) -> StoredObject:
        """Puts the finalizer on the object, or says why it goes and takes it off."""
        held = [each for each in stored.raw["metadata"].get("finalizers", []) if each != FINALIZER]
        if plan.finalizer is FinalizerWish.HOLD:
            held.append(FINALIZER)
        else:
            for notice in plan.notices:
                await self._recorder.post(stored.raw, notice)
        return self.keep(await self._api.set_finalizers(stored.raw, held))

    async def write_status(self, stored: StoredObject, status: Status) -> StoredObject:
        """Writes what differs, and nothing where nothing does."""
        before = stored.raw.get("status") or {}
        patch = merge_patch(before, status.to_kubernetes())
        if not patch:
            return stored
        self._metrics.status_writes.labels(stored.key.kind).inc()
        return self.keep(await self._api.patch_status(stored.raw, patch))

    def keep(self, raw: Raw) -> StoredObject:
        """Remembers an object as the API server answered, unless the watch was faster.

        The watch then brings nothing new, so its owners are notified here."""
        kept = self._store.update(raw)
        self._tell(kept.owner_keys)
        return kept

    def keep_created(self, raw: Raw) -> None:
        """Remembers an object that was just created, and has it looked at."""
        created = self._store.put(raw)
        if created is not None:
            self._tell([created.key, *created.owner_keys])


def status_saying(verdict: Verdict, resource: AnyResource) -> Status:
    """The status of an object of which nothing new is known but a verdict."""
    said = conditions(verdict, resource.status, resource.metadata, datetime.now(UTC).replace(microsecond=0))
    return resource.status.model_copy(update={"observed_generation": resource.metadata.generation, "conditions": said})
