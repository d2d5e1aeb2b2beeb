"""When an object that is being deleted is let go, though what its deletion asks for was not done.

A namespace that is being deleted must not hang on a Kafka cluster. So whatever stands in the way (the KafkaCluster is gone,
ZooKeeper does not answer, a write is refused, the object cannot be read), the finalizer goes after a bounded time, and an
event says what is left behind. An operator that was away itself tries for a while before it gives anything up.

A KafkaCluster waits without a limit for the objects that need it: until they are gone, or a person forces its deletion.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, StoredObject
from controller_operator.plans.cluster_deletion import describe_dependents, is_forced, waiting_verdict
from controller_operator.plans.outcome import DELETION_PATIENCE, Notice, is_overdue
from controller_operator.reconciling.access import Withheld
from controller_operator.reconciling.kinds import KindHandler
from controller_operator.reconciling.object_writer import ObjectWriter, status_saying
from controller_operator.reconciling.wall_clock import Now
from controller_operator.resources import FeatureSet, KafkaCluster, KafkaTopic, PartitionReassignment
from controller_operator.resources.common import FINALIZER, DeletionPolicy, ObjectMeta

_UNHELD: Final = (
    f"the object was deleted before the operator had put its finalizer {FINALIZER} on it. Create the object again, and"
    " delete it when it has the finalizer"
)
_TRIES_FIRST: Final = timedelta(seconds=60)


class LettingGo:
    """Decides about finalizers that no plan releases, and releases them."""

    def __init__(
        self, writer: ObjectWriter, handlers: Mapping[str, KindHandler], now: Now, *, missing_cluster_grace_s: float
    ) -> None:
        self._writer = writer
        self._handlers = handlers
        self._missing_cluster_grace = timedelta(seconds=missing_cluster_grace_s)
        self._now = now
        self._began = now()

    def is_overdue(self, stored: StoredObject) -> bool:
        """Return True if the object has waited for its deletion long enough, whatever is in the way.

        A KafkaCluster never has: without it the data of its topics would stay."""
        if stored.key.kind == KafkaCluster.definition.kind:
            return False
        now = self._now()
        return _is_held(stored) and now >= self._began + _TRIES_FIRST and is_overdue(_metadata(stored), now)

    def may_go(self, stored: StoredObject, resource: AnyResource, grant: Withheld) -> bool:
        """Whether the object has waited long enough for the cluster that it does not get, or has lost it for good."""
        deleted_at = resource.metadata.deletion_timestamp
        if deleted_at is None or not _is_held(stored):
            return False
        if resource.is_paused or (grant.verdict is not None and grant.verdict.is_stalled):
            return True
        if grant.is_missing and self._now() >= deleted_at + self._missing_cluster_grace:
            return True
        return grant.verdict is not None and self.is_overdue(stored)

    async def without_cluster(self, stored: StoredObject, grant: Withheld) -> None:
        """Lets an object go whose cluster cannot be had."""
        why = grant.verdict.message if grant.verdict else "the cluster is not needed, as this object is paused"
        await self.let_go(stored, "ClusterGone" if grant.is_missing else "ClusterUnreachable", why)

    async def let_go(self, stored: StoredObject, reason: str, why: str) -> None:
        """Takes the finalizer off, where the object has it, and says what stays."""
        if not _is_held(stored):
            return
        leftover = self._handlers[stored.key.kind].leftover
        message = f"{leftover or 'nothing is left behind'}: {why}"
        notice = Notice(reason=reason, message=message, is_warning=True, is_leftover=leftover is not None)
        await self._writer.release(stored, (notice,))

    async def after_failure(self, stored: StoredObject, error: Exception) -> None:
        """Lets an object go whose deletion fails again and again."""
        why = f"not deleted within {DELETION_PATIENCE}, as {type(error).__name__}: {error}"
        await self.let_go(stored, "DeletionUnfinished", why)


def left_behind(gone: AnyResource | None, heir: KafkaTopic | None = None) -> Notice | None:
    """Return the event about what an object that is gone leaves behind against its spec, or to its heir; None if that is
    nothing.

    An object that the operator has let go has a time of its deletion, and has said so itself."""
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
        """Puts the finalizer on a KafkaCluster when the first object refers to it.

        An object that has ended counts, too. Otherwise short elections would set the finalizer only now and then."""
        is_held = FINALIZER in stored.raw["metadata"].get("finalizers", ())
        return stored if is_held or not self._store.dependents(stored.key) else await self._writer.hold(stored)

    async def let_go(self, stored: StoredObject, cluster: KafkaCluster) -> bool:
        """Takes the finalizer off if no object needs the KafkaCluster, or if its deletion is forced.

        Otherwise says in the status what it waits for, and returns False. A pause or an outage changes nothing."""
        needed_by = self._store.unfinished(stored.key)
        if needed_by and not is_forced(cluster.metadata):
            await self._writer.write_status(
                stored, status_saying(waiting_verdict(cluster.metadata, needed_by), cluster, self._now())
            )
            return False
        if FINALIZER in cluster.metadata.finalizers:
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
