"""Reconciles one object at a time: plans, writes the status, carries out the steps, and plans again.

The status is written before the steps (see `plans`). After the steps the touched znodes are read again before the next
plan, so a plan never misses the operator's own changes. Failed work is retried: at once if the cluster or the object
has changed in between, and with growing pauses after errors.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import structlog

from controller_core.client.log_dirs.log_sizes import OpenBroker
from controller_core.model.snapshot import Snapshot
from controller_core.zk.session import TooLarge
from controller_operator.clusters.cluster import Reply
from controller_operator.kafka.requests.cancellations import CancelReply
from controller_operator.kafka.requests.elections import ElectionReply
from controller_operator.kafka.requests.features import FeatureReply
from controller_operator.kafka.requests.moves import MoveReply
from controller_operator.kafka.requests.throttles import ThrottleReply
from controller_operator.kafka.requests.topics import TopicReply
from controller_operator.kafka.write_limits import find_remedy
from controller_operator.kubernetes.object_api import ApiRefused, ApiUnavailable, ObjectApi, ObjectChanged, ObjectGone
from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, StoredObject
from controller_operator.metrics import OperatorMetrics
from controller_operator.observation.observation import NotCurrent
from controller_operator.plans.outcome import Context, Notice, Plan, Step, Verdict, make_ended_status, seconds_left
from controller_operator.reconciling.access import ClusterAccess, Granted, Withheld
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.reconciling.kinds import add_next_steps, kind_handlers, plan_object
from controller_operator.reconciling.letting_go import ClusterDeletion, LettingGo
from controller_operator.reconciling.measuring.cluster_meter import ClusterMeter
from controller_operator.reconciling.measuring.move_meter import OVER_TCP, MoveMeter
from controller_operator.reconciling.object_writer import ObjectWriter, make_status
from controller_operator.reconciling.step_runner import StepRunner
from controller_operator.reconciling.wall_clock import Now, utc_now
from controller_operator.resources import KafkaCluster, PartitionReassignment, PreferredElection
from controller_operator.resources.common import FINALIZER, Ending, Status
from controller_operator.resources.conditions import ConditionType, Reason

_ROUNDS: Final = 6
_AGAIN_S: Final = 0.5
_HELD_S: Final = 60.0
_DEPENDENTS_S: Final = 15.0
RunsOnce = PartitionReassignment | PreferredElection
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a reconciliation: a word for the metrics, and the seconds until the next one."""

    word: str
    look_again_in_s: float | None = None


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
        now: Now = utc_now,
        trouble_of_kind: Callable[[str], str | None] = _no_trouble,
    ) -> None:
        """`tell` queues other objects that a change concerns; `namespaces`: those whose objects are known, empty: all;
        `open_broker` makes a client of a broker; `trouble_of_kind` returns why nothing may be done for a kind."""
        self._now = now
        self._trouble_of_kind = trouble_of_kind
        self._store = store
        self._api = api
        self._access = access
        self._recorder = recorder
        self._writer = ObjectWriter(store, api, recorder, metrics, tell, now)
        self._cluster_deletion = ClusterDeletion(store, self._writer, now)
        self._steps = StepRunner(store, api, self._writer, recorder, metrics)
        self._meter = MoveMeter(open_broker, tell, now)
        self._cluster_meter = ClusterMeter(open_broker, tell)
        self._handlers = kind_handlers(store, access, self._meter, self._cluster_meter, namespaces)
        self._letting_go = LettingGo(self._writer, self._handlers, now, missing_cluster_grace_s=missing_cluster_grace_s)

    async def reconcile(self, key: Key) -> Result:
        """Reconcile an object. Raises `ApiError` and `ZkError` if something cannot be reached or is refused."""
        stored = self._store.get(key)
        if stored is None:
            self._meter.forget(key)
            self._cluster_meter.forget(key)
            return Result(word="gone")
        try:
            return await self._reconcile_bounded(stored)
        except ObjectGone as error:
            return await self._handle_gone(stored, error)
        except ObjectChanged:
            self._store.update(await self._api.get(key))
            return Result(word="changed", look_again_in_s=0.0)

    async def close(self) -> None:
        """End the background work."""
        await self._meter.close()
        await self._cluster_meter.close()

    async def _handle_gone(self, stored: StoredObject, error: ObjectGone) -> Result:
        """Handle a missing object: the object itself, or something that it needs, such as a kind or a subresource."""
        try:
            found = StoredObject(await self._api.get(stored.key))
        except ObjectGone:
            found = None
        if found is not None and found.uid == stored.uid:
            raise ApiRefused(f"not found, and {stored.key} is there: {error}") from error
        self._store.remove(stored.key, stored.uid)
        return Result(word="gone")

    async def _reconcile_bounded(self, stored: StoredObject) -> Result:
        """Reconcile an object, but let no failure delay its deletion for ever."""
        try:
            return await self._reconcile(stored)
        except (ObjectGone, ObjectChanged, ApiUnavailable):
            raise
        except Exception as error:
            if not self._letting_go.is_overdue(stored):
                raise
            _log.warning("let go without its deletion", object=str(stored.key), exc_info=error)
            await self._letting_go.release_after_failure(self._store.get(stored.key) or stored, error)
            return Result(word="released")

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
                return await self._delete_cluster(stored, resource)
            stored = await self._cluster_deletion.hold(stored)
        grant = self._access.find_grant(resource)
        if isinstance(grant, Withheld):
            return await self._reconcile_without_cluster(stored, resource, grant)
        return await self._reconcile_with_cluster(stored, grant)

    async def _hold(self, stored: StoredObject, trouble: str) -> Result:
        """Write nothing, because any write would permanently remove the fields that the API server does not show."""
        if self._letting_go.is_overdue(stored):
            await self._letting_go.let_go(stored, "DefinitionOutdated", trouble)
            return Result(word="released")
        if stored.key.kind == KafkaCluster.definition.kind:
            notice = Notice(reason="DefinitionOutdated", message=trouble, is_warning=True)
            await self._recorder.post(stored.raw, notice)
        return Result(word="held", look_again_in_s=_HELD_S)

    async def _keep_unreadable(self, stored: StoredObject) -> Result:
        """Report an unreadable object and release it when it is deleted. Nothing else is done, because its spec is
        unknown."""
        _log.warning("object cannot be read", object=str(stored.key), error=stored.error)
        if stored.raw["metadata"].get("deletionTimestamp") is not None:
            await self._letting_go.let_go(stored, "InvalidSpec", f"this object cannot be read: {stored.error}")
            return Result(word="released")
        await self._writer.write_unreadable(stored)
        return Result(word="unreadable")

    async def _keep_ended(self, stored: StoredObject, resource: RunsOnce, ending: Ending) -> Result:
        """Keep an object whose one run is over. It needs no cluster. Unless paused, it is deleted after its time to
        live."""
        self._meter.forget(stored.key)
        if FINALIZER in resource.metadata.finalizers:
            stored = await self._writer.release(stored)
        if resource.metadata.deletion_timestamp is not None:
            return Result(word="released")
        stored = await self._writer.write_status(stored, make_ended_status(resource.status, resource.metadata, ending))
        ttl_s = None if resource.is_paused else resource.spec.ttl_seconds_after_finished
        left_s = seconds_left(resource.status.completion_time, ttl_s, self._now())
        if left_s != 0:
            return Result(word="settled", look_again_in_s=left_s)
        await self._api.delete(stored.raw)
        _log.info("deleted, as its time is over", object=str(stored.key))
        return Result(word="deleted")

    async def _delete_cluster(self, stored: StoredObject, resource: KafkaCluster) -> Result:
        if await self._cluster_deletion.let_go(stored, resource):
            return Result(word="released")
        return Result(word="held", look_again_in_s=_DEPENDENTS_S)

    async def _reconcile_without_cluster(self, stored: StoredObject, resource: AnyResource, grant: Withheld) -> Result:
        if self._letting_go.may_go(stored, resource, grant):
            await self._letting_go.release_without_cluster(stored, grant)
            return Result(word="released")
        verdict = Verdict.make_paused(resource.status, resource.metadata) if resource.is_paused else grant.verdict
        if verdict is None and resource.status.condition(ConditionType.READY) is None:
            verdict = Verdict.make_first()
        if verdict is not None:
            await self._writer.write_status(stored, make_status(verdict, resource, self._now()))
        return Result(word="withheld", look_again_in_s=grant.retry_s)

    async def _reconcile_with_cluster(self, stored: StoredObject, grant: Granted) -> Result:
        context = Context(now=self._present())
        handler = self._handlers[stored.key.kind]
        for _ in range(_ROUNDS):
            if stored.resource is None:
                return await self._keep_unreadable(stored)
            context = replace(context, now=self._present(), limits=grant.kafka.limits)
            plan = plan_object(handler, stored.resource, grant, context)
            plan = add_next_steps(plan, handler, stored.resource, grant, context)
            if plan.needs_fresh_view and not context.is_view_fresh:
                grant = replace(grant, view=await grant.kafka.refresh())
                context = replace(context, is_view_fresh=True)
                continue
            refusal = grant.permission.refuse_steps(plan.steps)
            if refusal is not None:
                return await self._reconcile_without_cluster(stored, stored.resource, Withheld(verdict=refusal))
            if postponed_s := self._writer.find_delay_s(stored, plan):
                return Result(word="postponed", look_again_in_s=min(postponed_s, plan.look_again_in_s or postponed_s))
            settled = await self._writer.settle(stored, plan)
            if settled is None:
                return Result(word="released")
            stored = settled
            if isinstance(stored.resource, PartitionReassignment) and stored.resource.ending is not None:
                return await self._keep_ended(stored, stored.resource, stored.resource.ending)
            if not plan.steps:
                return Result(word="settled", look_again_in_s=self._again_in_s(stored, plan, grant))
            if plan.not_after is not None and self._present() >= plan.not_after:
                continue
            try:
                done, replies = await self._steps.carry_out(stored, plan.steps, grant)
            except TooLarge as error:  # no plan has measured it; nothing was sent
                return await self._write_stalled(
                    stored, Verdict.make_stalled(Reason.TOO_LARGE, f"{error}: {find_remedy(plan.steps)}")
                )
            grant = replace(grant, view=await _read_view(plan.steps, done, replies, grant))
            context = _add_results(context, tuple(done), replies)
        return Result(word="unsettled", look_again_in_s=_AGAIN_S)

    def _present(self) -> datetime:
        """Return the present moment in whole seconds, for records."""
        return self._now().replace(microsecond=0)

    def _again_in_s(self, stored: StoredObject, plan: Plan[Status], grant: Granted) -> float | None:
        """Return the seconds until the plan, or a measurement, needs the next reconciliation."""
        if isinstance(stored.resource, KafkaCluster) and not stored.resource.is_paused:
            due_in_s = self._cluster_meter.look(stored.key, stored.uid, grant.kafka, grant.view, grant.asking)
            return min(due_in_s, plan.look_again_in_s or due_in_s)
        if plan.copies is None:
            return plan.look_again_in_s
        due_in_s = self._meter.look(stored, plan.copies, grant.view, grant.asking.listener)
        return min(due_in_s, plan.look_again_in_s or due_in_s)

    async def _write_stalled(self, stored: StoredObject, verdict: Verdict) -> Result:
        if stored.resource is not None:
            await self._writer.write_status(stored, make_status(verdict, stored.resource, self._now()))
        return Result(word="refused")


async def _read_view(steps: Sequence[Step], done: Sequence[Step], replies: Sequence[Reply], grant: Granted) -> Snapshot:
    """Return a view that shows the completed steps. Raises `NotCurrent`.

    If no server could be asked, return the last view: the trouble must be reported, and the same server may be what
    keeps the cluster from being read."""
    try:
        return await grant.kafka.refresh(steps)
    except NotCurrent:
        if done or not replies or any(reply.trouble is None for reply in replies):
            raise
        return grant.view


def _add_results(context: Context, done: tuple[Step, ...], replies: list[Reply]) -> Context:
    """Return the context of the next plan in the same reconciliation."""
    return replace(
        context,
        done=(*context.done, *done),
        replies=(*context.replies, *(each for each in replies if isinstance(each, FeatureReply))),
        cancellations=(*context.cancellations, *(each for each in replies if isinstance(each, CancelReply))),
        submissions=(*context.submissions, *(each for each in replies if isinstance(each, MoveReply))),
        throttles=(*context.throttles, *(each for each in replies if isinstance(each, ThrottleReply))),
        topics=(*context.topics, *(each for each in replies if isinstance(each, TopicReply))),
        elections=(*context.elections, *(each for each in replies if isinstance(each, ElectionReply))),
        is_view_fresh=False,
    )
