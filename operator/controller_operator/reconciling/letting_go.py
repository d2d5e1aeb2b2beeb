"""Releases deleted objects although their deletion was not carried out.

A namespace that is being deleted must not hang on a Kafka cluster. So the finalizer is removed after a bounded time,
whatever the obstacle is: the KafkaCluster is gone, ZooKeeper does not answer, a write is refused, the object cannot be
read. An event names the leftovers. An operator that was away itself first tries for a while.
A KafkaCluster waits without a limit for the objects that need it: until they are gone, or a person forces its deletion.
"""

import asyncio
from datetime import timedelta
from typing import Final

from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, StoredObject
from controller_operator.plans.cluster.deletion import describe_dependents, is_forced, make_waiting_verdict
from controller_operator.plans.decision import LEFTOVERS
from controller_operator.plans.outcome import Notice, is_overdue, make_status
from controller_operator.reconciling.access import Withheld
from controller_operator.reconciling.object_writer import ObjectWriter
from controller_operator.reconciling.wall_clock import Now
from controller_operator.resources import FeatureSet, KafkaCluster, KafkaTopic, PartitionReassignment
from controller_operator.resources.common import FINALIZER, DeletionPolicy, ObjectMeta

_UNHELD: Final = (
    f"the object was deleted before the operator had put its finalizer {FINALIZER} on it. Create the object again, and"
    " delete it when it has the finalizer"
)
_TRIES_FIRST_S: Final = 60.0


class LettingGo:
    """Decides about finalizers that no plan releases, and releases them."""

    def __init__(self, writer: ObjectWriter, now: Now, *, missing_cluster_grace_s: float) -> None:
        self._writer = writer
        self._missing_cluster_grace = timedelta(seconds=missing_cluster_grace_s)
        self._now = now
        self._began_s = asyncio.get_running_loop().time()
        """Not a time of day, because the clock may be set while the operator runs."""

    def is_overdue(self, stored: StoredObject) -> bool:
        """Return True if the object has waited for its deletion long enough, whatever the obstacle is.

        A KafkaCluster never has, because without it the data of its topics would stay."""
        if stored.key.kind == KafkaCluster.definition.kind:
            return False
        # The deadline may have passed while no operator ran, so this process first tries for a while.
        has_tried = asyncio.get_running_loop().time() >= self._began_s + _TRIES_FIRST_S
        return _is_held(stored) and has_tried and is_overdue(_metadata(stored), self._now())

    def may_go(self, stored: StoredObject, resource: AnyResource, grant: Withheld) -> bool:
        """Return True if the object has waited long enough for its missing cluster, or has lost it for good."""
        deleted_at = resource.metadata.deletion_timestamp
        if deleted_at is None or not _is_held(stored):
            return False
        if resource.is_paused or (grant.verdict is not None and grant.verdict.is_stalled):
            return True
        if grant.is_missing and self._now() >= deleted_at + self._missing_cluster_grace:
            return True
        return grant.verdict is not None and self.is_overdue(stored)

    async def let_go(self, stored: StoredObject, reason: str, why: str) -> None:
        """Remove the finalizer, if the object has it, and report the leftovers."""
        if not _is_held(stored):
            return
        leftover = LEFTOVERS.get(stored.key.kind)
        message = f"{leftover or 'nothing is left behind'}: {why}"
        notice = Notice(reason=reason, message=message, is_warning=True, is_leftover=leftover is not None)
        await self._writer.release(stored, (notice,))


def make_leftover_notice(gone: AnyResource | None, heir: KafkaTopic | None = None) -> Notice | None:
    """Return the event about the leftovers of a deleted object, or about its heir; None if there is nothing to report.

    An object that the operator has released has a deletion time, and was reported already."""
    match gone:
        case KafkaTopic() if heir is not None:
            message = f"topic {gone.topic_name} stays with its data: {heir.metadata.full_name} takes it over"
            has_left = _is_at_once(gone) and gone.status.topic_id is not None and gone.status.owner is None
            return Notice(reason="TopicHandedOver", message=message) if has_left else None
        case PartitionReassignment() if gone.status.is_under_way:
            message = "deleted while it ran: the partitions go on to their targets"
            return Notice(reason="ReassignmentContinues", message=message, is_warning=True, is_leftover=True)
        case KafkaTopic() if gone.status.topic_id is not None and _was_unheld(gone, gone.spec.deletion_policy):
            message = f"topic {gone.topic_name} stays: {_UNHELD}"
            return Notice(reason="TopicRetained", message=message, is_warning=True, is_leftover=True)
        case FeatureSet() if gone.status.finalized is not None and _was_unheld(gone, gone.spec.deletion_policy):
            message = f"the finalized levels stay: {_UNHELD}"
            return Notice(reason="FeaturesRetained", message=message, is_warning=True, is_leftover=True)
    return None


def _was_unheld(gone: KafkaTopic | FeatureSet, policy: DeletionPolicy) -> bool:
    """Return True if the API server deleted the object at once, although its policy is Delete."""
    return _is_at_once(gone) and policy is DeletionPolicy.DELETE and not gone.is_paused


def _is_at_once(gone: KafkaTopic | FeatureSet) -> bool:
    """Return True if the API server deleted the object without the operator."""
    return gone.metadata.deletion_timestamp is None and FINALIZER not in gone.metadata.finalizers


class ClusterDeletion:
    """Puts the finalizer on KafkaClusters with dependents, and decides when a deleted one may go."""

    def __init__(self, store: ObjectStore, writer: ObjectWriter, now: Now) -> None:
        self._store = store
        self._writer = writer
        self._now = now

    async def hold(self, stored: StoredObject) -> StoredObject:
        """Put the finalizer on a KafkaCluster when the first object refers to it.

        An object that has ended counts, too. Otherwise short elections would set the finalizer again and again."""
        is_held = FINALIZER in stored.raw["metadata"].get("finalizers", ())
        return stored if is_held or not self._store.dependents(stored.key) else await self._writer.hold(stored)

    async def let_go(self, stored: StoredObject) -> bool:
        """Remove the finalizer if no object needs the KafkaCluster, or if its deletion is forced.

        Otherwise report the dependents in the status, and return False. A pause, an outage or a spec that cannot be read
        changes nothing."""
        cluster, metadata = stored.resource, _metadata(stored)
        needed_by = self._store.list_unfinished(stored.key)
        if needed_by and not is_forced(metadata):
            waiting = make_waiting_verdict(metadata, needed_by)
            if cluster is None:
                await self._writer.write_unreadable(stored, waiting.message)
            else:
                await self._writer.write_status(stored, make_status(waiting, cluster, self._now()))
            return False
        if FINALIZER in metadata.finalizers:
            await self._writer.release(stored, (_loss_notice(needed_by),) if needed_by else ())
        return True


def _loss_notice(needed_by: set[Key]) -> Notice:
    message = f"deleted before its dependents; their topics and data stay: {describe_dependents(needed_by)}"
    return Notice(reason="DeletedBeforeDependents", message=message, is_warning=True, is_leftover=True)


def _metadata(stored: StoredObject) -> ObjectMeta:
    return ObjectMeta.model_validate(stored.raw["metadata"])


def _is_held(stored: StoredObject) -> bool:
    metadata = stored.raw["metadata"]
    return metadata.get("deletionTimestamp") is not None and FINALIZER in metadata.get("finalizers", ())
