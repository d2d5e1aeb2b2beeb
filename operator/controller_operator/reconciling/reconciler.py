"""Looks at one object at a time: plans, writes the status, then does what the plan says, and looks again.

The status goes before the deed (see `plans`). After a deed the touched znodes are read again before the next plan, so a
plan never misses what this operator did itself. What could not be done is tried again: at once where the cluster or
the object has changed in between, with growing pauses after errors.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

import structlog

from controller_core.zk import paths
from controller_operator.kafka.actions import Action, Outcome, execute, touched_paths
from controller_operator.kafka.cancel_requests import CancelReassignment, CancelReply, cancel_reassignment
from controller_operator.kafka.feature_requests import (
    FeatureReply,
    NoBootstrapServerError,
    OpenClient,
    UpdateFeatures,
    bootstrap_addresses,
    update_features,
)
from controller_operator.kubernetes.object_api import ObjectApi, ObjectChanged, ObjectGone, merge_patch
from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, Raw, StoredObject, key_of
from controller_operator.metrics import OperatorMetrics
from controller_operator.plans.cluster import plan_cluster
from controller_operator.plans.election import plan_election
from controller_operator.plans.feature_set import deletion as feature_deletion
from controller_operator.plans.feature_set.planner import plan_feature_set
from controller_operator.plans.outcome import (
    Context,
    FinalizerWish,
    ForgetMove,
    Notice,
    Plan,
    StartMove,
    Step,
    Verdict,
    conditions,
    ended_status,
    seconds_left,
)
from controller_operator.plans.reassignment import deletion as reassignment_deletion
from controller_operator.plans.reassignment.planner import plan_reassignment
from controller_operator.plans.topic import deletion as topic_deletion
from controller_operator.plans.topic.planner import Surroundings, plan_topic
from controller_operator.reconciling.access import ClusterAccess, Granted, Withheld
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.resources import FeatureSet, KafkaCluster, KafkaTopic, PartitionReassignment, PreferredElection
from controller_operator.resources.common import API_VERSION, FINALIZER, Status
from controller_operator.resources.conditions import ConditionType

Undone = KafkaTopic | FeatureSet | PartitionReassignment
"""The kinds whose deletion undoes something."""
Reply = FeatureReply | CancelReply
ZooKeeperOrObjectStep = Action | StartMove | ForgetMove
_ROUNDS: Final = 6
_AGAIN_S: Final = 0.5
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one look at an object: a word for the metrics, and when to look again by itself."""

    word: str
    look_again_in_s: float | None = None


class Reconciler:
    """Looks at objects. Its methods may run for several objects at once, but never twice for the same one."""

    def __init__(
        self,
        store: ObjectStore,
        api: ObjectApi,
        access: ClusterAccess,
        recorder: EventRecorder,
        metrics: OperatorMetrics,
        tell: Callable[[Iterable[Key]], None],
        open_client: OpenClient,
        *,
        missing_cluster_grace_s: float,
    ) -> None:
        """`tell` has other objects looked at that this one's change concerns; `open_client` makes a client of a cluster."""
        self._open_client = open_client
        self._store = store
        self._tell = tell
        self._api = api
        self._access = access
        self._recorder = recorder
        self._metrics = metrics
        self._missing_cluster_grace = timedelta(seconds=missing_cluster_grace_s)

    async def reconcile(self, key: Key) -> Result:
        """One look at an object. Raises `ApiError` and `ZkError` where something cannot be reached or is refused."""
        stored = self._store.get(key)
        if stored is None:
            return Result(word="gone")
        try:
            return await self._reconcile(stored)
        except ObjectGone:
            # Also where a status subresource or a kind is missing: then the next listing brings the object back.
            self._store.remove(key, stored.uid)
            return Result(word="gone")
        except ObjectChanged:
            self._store.put(await self._api.get(key))
            return Result(word="changed", look_again_in_s=0.0)

    async def _reconcile(self, stored: StoredObject) -> Result:
        resource = stored.resource
        if resource is None:
            _log.warning("object cannot be read", object=str(stored.key), error=stored.error)
            return Result(word="unreadable")
        if resource.status.condition(ConditionType.READY) is None and resource.metadata.deletion_timestamp is None:
            stored = await self._write_status(stored, self._refused_status(resource, Verdict.first_sight()))
            resource = stored.resource or resource
        if isinstance(resource, PartitionReassignment | PreferredElection) and resource.has_ended:
            return await self._keep_ended(stored, resource)
        grant = self._access.of(resource)
        if isinstance(grant, Withheld):
            return await self._without_cluster(stored, resource, grant)
        return await self._with_cluster(stored, grant)

    async def _keep_ended(self, stored: StoredObject, resource: PartitionReassignment | PreferredElection) -> Result:
        """An object whose one run is over needs no cluster any more; it goes when its time is over, unless it is paused."""
        if FINALIZER in resource.metadata.finalizers:
            stored = await self._settle_finalizer(stored, Plan(status=resource.status, finalizer=FinalizerWish.RELEASE))
        if resource.metadata.deletion_timestamp is not None:
            return Result(word="released")
        stored = await self._write_status(stored, ended_status(resource.status, resource.metadata))
        ttl_s = None if resource.is_paused else resource.spec.ttl_seconds_after_finished
        left_s = seconds_left(resource.status.completion_time, ttl_s, datetime.now(UTC))
        if left_s != 0:
            return Result(word="settled", look_again_in_s=left_s)
        await self._api.delete(stored.raw)
        _log.info("deleted, as its time is over", object=str(stored.key))
        return Result(word="deleted")

    async def _without_cluster(self, stored: StoredObject, resource: AnyResource, grant: Withheld) -> Result:
        if isinstance(resource, Undone) and self._may_go(resource, grant):
            plan = _release_without_cluster(resource)
            await self._settle_finalizer(stored, plan)
            return Result(word="released")
        verdict = Verdict.paused(resource.status, resource.metadata) if resource.is_paused else grant.verdict
        if verdict is not None:
            await self._write_status(stored, self._refused_status(resource, verdict))
        return Result(word="withheld", look_again_in_s=grant.retry_s)

    def _may_go(self, resource: Undone, grant: Withheld) -> bool:
        """Whether an object that is being deleted has waited long enough for its cluster, or has lost it for good."""
        deleted_at = resource.metadata.deletion_timestamp
        if deleted_at is None or FINALIZER not in resource.metadata.finalizers:
            return False
        if resource.is_paused or (grant.verdict is not None and grant.verdict.is_stalled):
            return True
        if isinstance(resource, PartitionReassignment) and reassignment_deletion.is_overdue(
            resource.metadata, datetime.now(UTC)
        ):
            return True
        return grant.is_missing and datetime.now(UTC) >= deleted_at + self._missing_cluster_grace

    async def _with_cluster(self, stored: StoredObject, grant: Granted) -> Result:
        context = Context(now=datetime.now(UTC).replace(microsecond=0))
        view = grant.view
        for _ in range(_ROUNDS):
            if stored.resource is None:
                return Result(word="unreadable")
            plan = self._plan(stored.resource, replace(grant, view=view), context)
            if plan.needs_fresh_view and not context.is_view_fresh:
                view = await grant.observer.refresh()
                context = replace(context, is_view_fresh=True)
                continue
            settled = await self._settle(stored, plan)
            if settled is None:
                return Result(word="released")
            stored = settled
            if isinstance(stored.resource, PartitionReassignment) and stored.resource.has_ended:
                return await self._keep_ended(stored, stored.resource)
            if not plan.steps:
                return Result(word="settled", look_again_in_s=plan.look_again_in_s)
            done, replies = await self._carry_out(stored, plan.steps, grant)
            view = await grant.observer.refresh(self._touched(plan.steps))
            context = replace(
                context,
                done=(*context.done, *done),
                replies=(*context.replies, *(each for each in replies if isinstance(each, FeatureReply))),
                cancellations=(
                    *context.cancellations,
                    *(each for each in replies if isinstance(each, CancelReply)),
                ),
                is_view_fresh=False,
            )
        return Result(word="unsettled", look_again_in_s=_AGAIN_S)

    def _plan(self, resource: AnyResource, grant: Granted, context: Context) -> Plan[Status]:
        if isinstance(resource, KafkaTopic):
            return plan_topic(resource, grant.view, self._surroundings(resource), context)
        if isinstance(resource, FeatureSet):
            return plan_feature_set(resource, grant.view, self._access.feature_claims(resource), context)
        is_going = isinstance(resource, PartitionReassignment) and resource.metadata.deletion_timestamp is not None
        if resource.is_paused and not is_going:
            return Plan(status=self._refused_status(resource, Verdict.paused(resource.status, resource.metadata)))
        if isinstance(resource, KafkaCluster):
            return plan_cluster(resource, grant.view, context)
        if isinstance(resource, PartitionReassignment):
            return plan_reassignment(resource, grant.view, context)
        return plan_election(resource, grant.view, context)

    def _surroundings(self, resource: KafkaTopic) -> Surroundings:
        claimant = self._access.claimant(resource).metadata
        is_own = claimant.uid == resource.metadata.uid
        return Surroundings(
            winner=None if is_own else f"{claimant.namespace}/{claimant.name}",
            moves=self._store.moves_of(resource.metadata.uid),
        )

    async def _settle(self, stored: StoredObject, plan: Plan[Status]) -> StoredObject | None:
        """Writes down what the plan says before anything is done; None where the object is let go with that."""
        if plan.finalizer is not FinalizerWish.KEEP_AS_IS:
            stored = await self._settle_finalizer(stored, plan)
            if stored.resource is None or stored.resource.metadata.deletion_timestamp is not None:
                return None
        stored = await self._write_status(stored, plan.status)
        for notice in plan.notices:
            await self._recorder.post(stored.raw, notice)
        return stored

    async def _settle_finalizer(self, stored: StoredObject, plan: Plan[Status]) -> StoredObject:
        held = [each for each in stored.raw["metadata"].get("finalizers", []) if each != FINALIZER]
        if plan.finalizer is FinalizerWish.HOLD:
            held.append(FINALIZER)
        else:
            for notice in plan.notices:
                await self._recorder.post(stored.raw, notice)
        return self._keep(await self._api.set_finalizers(stored.raw, held))

    async def _write_status(self, stored: StoredObject, status: Status) -> StoredObject:
        """Writes what differs, and nothing where nothing does."""
        before = stored.raw.get("status") or {}
        patch = merge_patch(before, status.to_kubernetes())
        if not patch:
            return stored
        self._metrics.status_writes.labels(stored.key.kind).inc()
        return self._keep(await self._api.patch_status(stored.raw, patch))

    def _keep(self, raw: Raw) -> StoredObject:
        """Remembers an object as the API server answered, unless a watch was faster.

        The watch then brings nothing new, so its owners are notified here."""
        kept = self._store.put(raw) or self._store.get(key_of(raw)) or StoredObject(raw)
        self._tell(kept.owner_keys)
        return kept

    async def _carry_out(
        self, stored: StoredObject, steps: Sequence[Step], grant: Granted
    ) -> tuple[list[Step], list[Reply]]:
        """Does the steps; returns those that are done, and what the controller answered."""
        done: list[Step] = []
        replies: list[Reply] = []
        for step in steps:
            if isinstance(step, UpdateFeatures | CancelReassignment):
                replies.append(await self._ask(step, grant))
                outcome = Outcome.LOOK_AGAIN if replies[-1].trouble else Outcome.DONE
            else:
                outcome = await self._carry_out_one(stored, step, grant)
            self._metrics.actions.labels(type(step).__name__, outcome.value).inc()
            _log.info("done", object=str(stored.key), step=type(step).__name__, outcome=outcome.value)
            if outcome is Outcome.DONE:
                done.append(step)
        return done, replies

    async def _ask(self, step: UpdateFeatures | CancelReassignment, grant: Granted) -> Reply:
        try:
            bootstrap = bootstrap_addresses(grant.cluster.spec.bootstrap_servers, grant.view)
        except NoBootstrapServerError as error:
            if isinstance(step, CancelReassignment):
                return CancelReply(step=step, trouble=str(error))
            return FeatureReply(step=step, trouble=str(error))
        client = self._open_client(bootstrap)
        if isinstance(step, CancelReassignment):
            return await cancel_reassignment(step, client)
        return await update_features(step, client)

    async def _carry_out_one(self, stored: StoredObject, step: ZooKeeperOrObjectStep, grant: Granted) -> Outcome:
        match step:
            case StartMove():
                return await self._start_move(stored, step)
            case ForgetMove():
                key = Key(PartitionReassignment.definition.kind, stored.key.namespace, step.name)
                known = self._store.remove(key)
                if known is not None:
                    await self._api.delete(known.raw)
            case _:
                return await execute(step, grant.observer.session)
        return Outcome.DONE

    async def _start_move(self, stored: StoredObject, step: StartMove) -> Outcome:
        try:
            self._tell([self._keep(await self._api.create(_move(stored, step))).key])
        except ObjectChanged:
            return Outcome.LOOK_AGAIN
        notice = Notice(reason="ReplicasMove", message=f"PartitionReassignment {step.name} moves replicas of the topic")
        await self._recorder.post(stored.raw, notice)
        return Outcome.DONE

    def _touched(self, steps: Sequence[Step]) -> list[str]:
        other = StartMove | ForgetMove | UpdateFeatures | CancelReassignment
        touched = [path for step in steps if not isinstance(step, other) for path in touched_paths(step)]
        cancelled = [tp for step in steps if isinstance(step, CancelReassignment) for tp in step.partitions]
        touched += [paths.REASSIGN_PARTITIONS, *{paths.topic(tp.topic) for tp in cancelled}] if cancelled else []
        return [*touched, paths.FEATURE] if any(isinstance(step, UpdateFeatures) for step in steps) else touched

    def _refused_status(self, resource: AnyResource, verdict: Verdict) -> Status:
        said = conditions(verdict, resource.status, resource.metadata, datetime.now(UTC).replace(microsecond=0))
        update = {"observed_generation": resource.metadata.generation, "conditions": said}
        return resource.status.model_copy(update=update)


def _release_without_cluster(resource: Undone) -> Plan[Status]:
    if isinstance(resource, PartitionReassignment):
        return reassignment_deletion.release(
            resource, "ClusterGone", "the cluster cannot be reached: the move, if it runs, goes on"
        )
    if isinstance(resource, FeatureSet):
        message = "the KafkaCluster is gone: the finalized levels, if there are any, stay"
        return feature_deletion.release(resource, "ClusterGone", message)
    return topic_deletion.release(
        resource, "ClusterGone", "the KafkaCluster is gone: the topic, if there is one, stays"
    )


def _move(stored: StoredObject, step: StartMove) -> Raw:
    """The PartitionReassignment that a topic owns. It goes with the topic's object."""
    metadata = stored.raw["metadata"]
    owner = {"apiVersion": API_VERSION, "kind": stored.key.kind, "name": metadata["name"], "uid": metadata["uid"]}
    partitions = [{"topic": tp.topic, "partition": tp.partition, "replicas": [*to]} for tp, to in step.partitions]
    return {
        "apiVersion": API_VERSION,
        "kind": PartitionReassignment.definition.kind,
        "metadata": {
            "name": step.name,
            "namespace": metadata["namespace"],
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {"clusterRef": stored.raw["spec"]["clusterRef"], "partitions": partitions},
    }
