"""Reconciles one object at a time: finds its cluster and its situation, decides, applies the decision, and decides again.

Failed work is retried: at once if the cluster or the object has changed in between, and with growing pauses after
errors.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import structlog

from controller_core.audit.trail import NO_TRAIL, AuditTrail
from controller_core.client.log_dirs.log_sizes import OpenBroker
from controller_core.model.topics.topic_changes import NO_RULES, TopicRules
from controller_operator.clusters.cluster import Reply
from controller_operator.kafka.requests.cancellations import CancelReply
from controller_operator.kafka.requests.elections import ElectionReply
from controller_operator.kafka.requests.features import FeatureReply
from controller_operator.kafka.requests.moves import MoveReply
from controller_operator.kafka.requests.placements import PlacementReply
from controller_operator.kafka.requests.topics import TopicReply
from controller_operator.kafka.throttle_steps import ThrottleReply
from controller_operator.kubernetes.object_api import (
    ApiForbidden,
    ApiRefused,
    ApiUnavailable,
    ObjectApi,
    ObjectChanged,
    ObjectGone,
)
from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, StoredObject
from controller_operator.metrics import OperatorMetrics
from controller_operator.plans.decision import decide
from controller_operator.plans.outcome import (
    DELETION_PATIENCE,
    Context,
    Notice,
    Step,
    Verdict,
    make_ended_status,
    make_status,
    seconds_left,
)
from controller_operator.reconciling.access import ClusterAccess, Granted, Withheld
from controller_operator.reconciling.applying import Applier, Result
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.reconciling.letting_go import ClusterDeletion, LettingGo
from controller_operator.reconciling.measuring.cluster_meter import ClusterMeter
from controller_operator.reconciling.measuring.move_meter import OVER_TCP, MoveMeter
from controller_operator.reconciling.measuring.plan_maker import PlanMaker
from controller_operator.reconciling.object_writer import ObjectWriter
from controller_operator.reconciling.situations import Situations
from controller_operator.reconciling.wall_clock import Now, utc_now
from controller_operator.resources import (
    KafkaCluster,
    KafkaTopic,
    PartitionReassignment,
    PreferredElection,
    RebalancePlan,
)
from controller_operator.resources.approval import Approval
from controller_operator.resources.common import FINALIZER, Ending
from controller_operator.resources.conditions import ConditionType

_ROUNDS: Final = 8
_AGAIN_S: Final = 0.5
_HELD_S: Final = 60.0
_DEPENDENTS_S: Final = 15.0
_RELEASED: Final = Result(word="released")
RunsOnce = PartitionReassignment | PreferredElection | RebalancePlan
_log = structlog.get_logger(__name__)

MakePlanMaker = Callable[[Callable[[Iterable[Key]], None]], PlanMaker]


def _no_trouble(_kind: str) -> str | None:
    return None


class Reconciler:
    """Reconciles objects. Its methods may run for several objects at once, but never twice for the same one."""

    def __init__(
        self,
        store: ObjectStore,
        api: ObjectApi,
        access: ClusterAccess,
        recorder: EventRecorder,
        metrics: OperatorMetrics,
        tell: Callable[[Iterable[Key]], None],
        *,
        missing_cluster_grace_s: float,
        namespaces: Collection[str] = (),
        open_broker: OpenBroker = OVER_TCP,
        make_plan_maker: MakePlanMaker = PlanMaker,
        now: Now = utc_now,
        trouble_of_kind: Callable[[str], str | None] = _no_trouble,
        rules: TopicRules = NO_RULES,
        trail: AuditTrail = NO_TRAIL,
    ) -> None:
        """`tell` queues other objects that a change concerns; `namespaces`: those whose objects are known, empty: all;
        `open_broker` makes a client of a broker; `make_plan_maker`
        makes what asks the planner; `trouble_of_kind` returns why nothing may be done for a kind."""
        self._now = now
        self._rules = rules
        self._trouble_of_kind = trouble_of_kind
        self._store = store
        self._api = api
        self._access = access
        self._recorder = recorder
        self._writer = ObjectWriter(store, api, recorder, metrics, tell, now)
        self._cluster_deletion = ClusterDeletion(store, self._writer, now)
        self._meter = MoveMeter(open_broker, tell, now)
        self._cluster_meter = ClusterMeter(open_broker, tell, store, namespaces)
        self._plan_maker = make_plan_maker(tell)
        meters = self._meter, self._cluster_meter, self._plan_maker
        self._situations = Situations(store, access, *meters)
        self._applier = Applier(store, api, self._writer, recorder, metrics, *meters, now, open_broker, trail)
        self._letting_go = LettingGo(self._writer, now, missing_cluster_grace_s=missing_cluster_grace_s)

    async def reconcile(self, key: Key) -> Result:
        """Reconcile an object. Raises `ApiError` and `ZkError` if something cannot be reached or is refused."""
        stored = self._store.get(key)
        if stored is None:
            self._meter.forget(key)
            self._cluster_meter.forget(key)
            self._plan_maker.forget(key)
            return Result(word="gone")
        try:
            return await self._reconcile(stored)
        except (ObjectGone, ObjectChanged) as error:
            return await self._read_again(stored, error)
        except ApiUnavailable:
            raise
        except Exception as error:
            # No failure delays a deletion for ever.
            if not self._letting_go.is_overdue(stored):
                raise
            _log.warning("let go without its deletion", object=str(stored.key), exc_info=error)
            return await self._let_go_after(stored, error)

    async def close(self) -> None:
        """End the background work."""
        await self._meter.close()
        await self._cluster_meter.close()
        await self._plan_maker.close()

    async def _reconcile(self, stored: StoredObject) -> Result:
        if trouble := self._trouble_of_kind(stored.key.kind):
            return await self._hold(stored, trouble)
        resource = stored.resource
        if resource is None:
            return await self._keep_unreadable(stored)
        if isinstance(resource, RunsOnce) and resource.ending is not None:
            return await self._keep_ended(stored, resource, resource.ending)
        if isinstance(resource, KafkaCluster):
            if resource.metadata.deletion_timestamp is not None:
                return await self._let_cluster_go(stored)
            stored = await self._cluster_deletion.hold(stored)
        grant = self._access.find_grant(resource)
        if isinstance(grant, Withheld):
            return await self._reconcile_without_cluster(stored, resource, grant)
        return await self._decide_and_apply(stored, grant)

    async def _decide_and_apply(self, stored: StoredObject, grant: Granted) -> Result:
        """Decide and apply the decision, again as long as the steps of one call for another one."""
        is_ending = await self._is_namespace_ending(stored)
        context = Context(now=self._present(), rules=self._rules, is_namespace_ending=is_ending)
        for _ in range(_ROUNDS):
            resource = stored.resource
            if resource is None:
                return await self._keep_unreadable(stored)
            context = replace(context, now=self._present(), limits=grant.kafka.limits)
            decision = decide(resource, self._situations.find(resource, grant, context))
            self._situations.remember(resource, decision, context)
            if decision.needs_fresh_view and not context.is_view_fresh:
                grant = replace(grant, view=await grant.kafka.refresh())
                context = replace(context, is_view_fresh=True)
                continue
            refusal = grant.permission.refuse_steps(decision.steps)
            if refusal is not None:
                return await self._reconcile_without_cluster(stored, resource, Withheld(verdict=refusal))
            applied = await self._applier.apply(stored, decision, grant)
            if applied.result is not None:
                return applied.result
            stored = applied.stored
            if (
                isinstance(stored.resource, PartitionReassignment | RebalancePlan)
                and stored.resource.ending is not None
            ):
                return await self._keep_ended(stored, stored.resource, stored.resource.ending)
            if applied.view is not None:
                grant = replace(grant, view=applied.view)
                context = _add_results(context, applied.done, applied.replies)
        return Result(word="unsettled", look_again_in_s=_AGAIN_S)

    async def _is_namespace_ending(self, stored: StoredObject) -> bool:
        """Return True if a deletion may wait for approval and the namespace is being deleted too."""
        resource = stored.resource
        if not isinstance(resource, KafkaTopic) or resource.spec.approval is not Approval.REQUIRED:
            return False
        if resource.metadata.deletion_timestamp is None or FINALIZER not in resource.metadata.finalizers:
            return False
        try:
            return await self._api.is_ending(stored.key.namespace)
        except ApiForbidden as error:
            _log.warning("namespace not read: give the operator the right to get namespaces", error=str(error))
            return False

    async def _hold(self, stored: StoredObject, trouble: str) -> Result:
        """Write nothing, because any write would permanently remove the fields that the API server does not show."""
        if self._letting_go.is_overdue(stored):
            await self._letting_go.let_go(stored, "DefinitionOutdated", trouble)
            return _RELEASED
        if stored.key.kind == KafkaCluster.definition.kind:
            notice = Notice(reason="DefinitionOutdated", message=trouble, is_warning=True)
            await self._recorder.post(stored.raw, notice)
        return Result(word="held", look_again_in_s=_HELD_S)

    async def _let_cluster_go(self, stored: StoredObject) -> Result:
        is_released = await self._cluster_deletion.let_go(stored)
        return _RELEASED if is_released else Result(word="held", look_again_in_s=_DEPENDENTS_S)

    async def _keep_unreadable(self, stored: StoredObject) -> Result:
        """Report an unreadable object and release it when it is deleted. Nothing else is done, because its spec is
        unknown."""
        _log.warning("object cannot be read", object=str(stored.key), error=stored.error)
        if stored.raw["metadata"].get("deletionTimestamp") is not None:
            if stored.key.kind == KafkaCluster.definition.kind:
                return await self._let_cluster_go(stored)
            await self._letting_go.let_go(stored, "InvalidSpec", f"this object cannot be read: {stored.error}")
            return _RELEASED
        await self._writer.write_unreadable(stored)
        return Result(word="unreadable")

    async def _keep_ended(self, stored: StoredObject, resource: RunsOnce, ending: Ending) -> Result:
        """Keep an object whose one run is over. It needs no cluster. Unless paused, it is deleted after its time to
        live."""
        self._meter.forget(stored.key)
        self._plan_maker.forget(stored.key)
        if FINALIZER in resource.metadata.finalizers:
            stored = await self._writer.release(stored)
        if resource.metadata.deletion_timestamp is not None:
            return _RELEASED
        stored = await self._writer.write_status(stored, make_ended_status(resource.status, resource.metadata, ending))
        ttl_s = None if resource.is_paused else resource.spec.ttl_seconds_after_finished
        left_s = seconds_left(resource.status.completion_time, ttl_s, self._now())
        if left_s != 0:
            return Result(word="settled", look_again_in_s=left_s)
        await self._api.delete(stored.raw)
        _log.info("deleted, as its time is over", object=str(stored.key))
        return Result(word="deleted")

    async def _reconcile_without_cluster(self, stored: StoredObject, resource: AnyResource, grant: Withheld) -> Result:
        if self._letting_go.may_go(stored, resource, grant):
            why = grant.verdict.message if grant.verdict else "the cluster is not needed, because this object is paused"
            await self._letting_go.let_go(stored, "ClusterGone" if grant.is_missing else "ClusterUnreachable", why)
            return _RELEASED
        verdict = Verdict.make_paused(resource.status, resource.metadata) if resource.is_paused else grant.verdict
        if verdict is None and resource.status.condition(ConditionType.READY) is None:
            verdict = Verdict.make_first()
        if verdict is not None:
            await self._writer.write_status(stored, make_status(verdict, resource, self._now()))
        return Result(word="withheld", look_again_in_s=grant.retry_s)

    async def _let_go_after(self, stored: StoredObject, failure: Exception) -> Result:
        """Release an object whose deletion fails again and again."""
        why = f"not deleted within {DELETION_PATIENCE}, because of {type(failure).__name__}: {failure}"
        try:
            await self._letting_go.let_go(self._store.get(stored.key) or stored, "DeletionUnfinished", why)
        except (ObjectGone, ObjectChanged) as error:
            return await self._read_again(stored, error)
        return _RELEASED

    async def _read_again(self, stored: StoredObject, error: ObjectGone | ObjectChanged) -> Result:
        """Read an object that has changed, or is missing: itself, or something that it needs, such as a kind or a
        subresource."""
        if isinstance(error, ObjectChanged):
            self._store.update(await self._api.get(stored.key))
            return Result(word="changed", look_again_in_s=0.0)
        try:
            found = StoredObject(await self._api.get(stored.key))
        except ObjectGone:
            found = None
        if found is not None and found.uid == stored.uid:
            raise ApiRefused(f"not found, and {stored.key} is there: {error}") from error
        self._store.remove(stored.key, stored.uid)
        return Result(word="gone")

    def _present(self) -> datetime:
        """Return the present moment in whole seconds, for records."""
        return self._now().replace(microsecond=0)


def _add_results(context: Context, done: Sequence[Step], replies: Sequence[Reply]) -> Context:
    """Return the context of the next plan in the same reconciliation."""
    return replace(
        context,
        done=(*context.done, *done),
        replies=(*context.replies, *(each for each in replies if isinstance(each, FeatureReply))),
        cancellations=(*context.cancellations, *(each for each in replies if isinstance(each, CancelReply))),
        submissions=(*context.submissions, *(each for each in replies if isinstance(each, MoveReply))),
        placements=(*context.placements, *(each for each in replies if isinstance(each, PlacementReply))),
        throttles=(*context.throttles, *(each for each in replies if isinstance(each, ThrottleReply))),
        topics=(*context.topics, *(each for each in replies if isinstance(each, TopicReply))),
        elections=(*context.elections, *(each for each in replies if isinstance(each, ElectionReply))),
        is_view_fresh=False,
    )
