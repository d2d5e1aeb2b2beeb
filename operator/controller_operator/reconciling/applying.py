"""Applies decisions: writes the finalizer, the status and the events, carries out the steps, and finds the next look.

The status is written before the steps (see `plans`). After the steps the touched znodes are read again before the next
decision, so a decision never misses the operator's own changes.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import structlog

from controller_core.audit.trail import AuditTrail
from controller_core.client.log_dirs.log_sizes import OpenBroker
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count
from controller_core.zk.session import TooLarge
from controller_operator.clusters.cluster import Reply
from controller_operator.kafka.actions import CreateTopic, Outcome
from controller_operator.kafka.requests.placements import PlacementStep
from controller_operator.kafka.throttle_steps import RemoveThrottle
from controller_operator.kafka.write_limits import find_remedy
from controller_operator.kubernetes.audited_objects import make_client_id, record_step
from controller_operator.kubernetes.object_api import ObjectApi, ObjectChanged, ObjectGone
from controller_operator.kubernetes.object_store import Key, ObjectStore, Raw, StoredObject
from controller_operator.metrics import OperatorMetrics
from controller_operator.observation.observation import NotCurrent
from controller_operator.plans.outcome import (
    CancelMove,
    FinalizerWish,
    ForgetMove,
    LimitMove,
    MoveStep,
    Notice,
    Plan,
    StartMove,
    Step,
    Verdict,
    make_status,
)
from controller_operator.plans.rebalance.looking import Look
from controller_operator.reconciling.access import Granted
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.reconciling.measuring.cluster_meter import ClusterMeter
from controller_operator.reconciling.measuring.move_meter import MoveMeter
from controller_operator.reconciling.measuring.plan_maker import PlanMaker
from controller_operator.reconciling.object_writer import ObjectWriter
from controller_operator.reconciling.placing import carry_out_placement
from controller_operator.reconciling.wall_clock import Now
from controller_operator.resources import KafkaCluster, PartitionReassignment, RebalancePlan
from controller_operator.resources.approval import Approval
from controller_operator.resources.common import API_VERSION, Status
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason

_MOVE_TTL_S: Final = 24 * 3600
"""Seconds for which the ended moves of a topic or plan stay for people to read. A topic then tries a failed one again."""
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a reconciliation: a word for the metrics, and the seconds until the next one."""

    word: str
    look_again_in_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The effect of a decision."""

    stored: StoredObject
    result: Result | None = None
    """None: the object needs another decision at once."""
    view: Snapshot | None = None
    """The cluster after the steps; None if there were none."""
    done: tuple[Step, ...] = ()
    replies: tuple[Reply, ...] = ()


class Applier:
    """Applies decisions. Raises `ApiError`s, and the `ZkError`s that are no answer to a step itself."""

    def __init__(
        self,
        store: ObjectStore,
        api: ObjectApi,
        writer: ObjectWriter,
        recorder: EventRecorder,
        metrics: OperatorMetrics,
        meter: MoveMeter,
        cluster_meter: ClusterMeter,
        plan_maker: PlanMaker,
        now: Now,
        open_broker: OpenBroker,
        trail: AuditTrail,
    ) -> None:
        self._trail = trail
        self._store = store
        self._api = api
        self._writer = writer
        self._recorder = recorder
        self._metrics = metrics
        self._meter = meter
        self._cluster_meter = cluster_meter
        self._plan_maker = plan_maker
        self._now = now
        self._open_broker = open_broker

    async def apply(self, stored: StoredObject, decision: Plan[Status], grant: Granted) -> Applied:
        """Write the finalizer, the status and the events of a decision, then carry out its steps."""
        if postponed_s := self._find_delay_s(stored, decision):
            look_again_in_s = min(postponed_s, decision.look_again_in_s or postponed_s)
            return Applied(stored=stored, result=Result(word="postponed", look_again_in_s=look_again_in_s))
        if decision.finalizer is FinalizerWish.HOLD:
            stored = await self._writer.hold(stored)
        elif decision.finalizer is FinalizerWish.RELEASE:
            stored = await self._writer.release(stored, decision.notices)
        if decision.finalizer is not FinalizerWish.KEEP_AS_IS and _is_going(stored):
            return Applied(stored=stored, result=Result(word="released"))
        stored = await self._writer.write_status(stored, decision.status, is_progress=decision.is_progress)
        for notice in decision.notices:
            await self._recorder.post(stored.raw, notice)
        if isinstance(stored.resource, PartitionReassignment | RebalancePlan) and stored.resource.ending is not None:
            return Applied(stored=stored)
        if not decision.steps:
            next_s = self._find_next_look_s(stored, decision, grant)
            return Applied(stored=stored, result=Result(word="settled", look_again_in_s=next_s))
        if decision.not_after is not None and self._now().replace(microsecond=0) >= decision.not_after:
            return Applied(stored=stored)
        try:
            done, replies = await self._carry_out(stored, decision.steps, grant)
        except TooLarge as error:  # no plan has measured it; nothing was sent
            await self._write_stalled(stored, f"{error}: {find_remedy(decision.steps)}")
            return Applied(stored=stored, result=Result(word="refused"))
        view = await _read_view(decision.steps, done, replies, grant)
        return Applied(stored=stored, view=view, done=tuple(done), replies=tuple(replies))

    def _find_delay_s(self, stored: StoredObject, decision: Plan[Status]) -> float:
        """Return the seconds until a status is written that only shows progress, or that will soon change again."""
        if decision.may_wait_s:
            return decision.may_wait_s
        if stored.resource is None or not _is_mere_progress(stored.resource.status, decision):
            return 0.0
        return self._writer.find_progress_delay_s(stored)

    def _find_next_look_s(self, stored: StoredObject, decision: Plan[Status], grant: Granted) -> float | None:
        """Return the seconds until the decision, or a measurement, needs the next reconciliation."""
        if isinstance(stored.resource, KafkaCluster) and not stored.resource.is_paused:
            due_in_s = self._cluster_meter.look(stored.key, stored.uid, grant.kafka, grant.view, grant.asking)
        elif decision.copies is not None or decision.directories:
            copies, listener = decision.copies or {}, grant.asking.listener
            due_in_s = self._meter.look(stored, copies, grant.view, listener, decision.directories)
        elif isinstance(decision.look, Look):
            planned_s = self._plan_maker.look(stored, decision.look, grant.view, grant.asking.listener)
            if planned_s is None:
                return decision.look_again_in_s
            due_in_s = planned_s
        else:
            return decision.look_again_in_s
        return min(due_in_s, decision.look_again_in_s or due_in_s)

    async def _write_stalled(self, stored: StoredObject, message: str) -> None:
        if stored.resource is not None:
            verdict = Verdict.make_stalled(Reason.TOO_LARGE, message)
            await self._writer.write_status(stored, make_status(verdict, stored.resource, self._now()))

    async def _carry_out(
        self, stored: StoredObject, steps: Sequence[Step], grant: Granted
    ) -> tuple[list[Step], list[Reply]]:
        """Carry out the steps. Return the done parts of them, and the cluster's replies."""
        done: list[Step] = []
        replies: list[Reply] = []
        for step in steps:
            if isinstance(step, MoveStep):
                outcome = await self._carry_out_one(stored, step)
            elif isinstance(step, PlacementStep):
                placed = await carry_out_placement(step, grant.view, grant.asking.listener, self._open_broker)
                step = replace(step, directories=placed.accepted)
                outcome = Outcome.DONE if placed.accepted else Outcome.LOOK_AGAIN
                replies.append(placed)
                if placed.accepted:
                    self._meter.outdate_places(stored.key, stored.uid)
            else:
                asking = replace(grant.asking, client_id=make_client_id(stored))
                carried = await grant.kafka.carry_out(step, asking)
                step, outcome = carried.step, carried.outcome
                replies += [carried.reply] if carried.reply is not None else []
            self._metrics.actions.labels(type(step).__name__, outcome.value).inc()
            record_step(self._trail, stored, step, is_done=outcome is Outcome.DONE)
            _log.info("done", object=str(stored.key), step=type(step).__name__, outcome=outcome.value)
            if outcome is Outcome.DONE:
                done.append(step)
                if isinstance(step, RemoveThrottle):
                    self._cluster_meter.drop_owner(stored.key, stored.uid, step.owner)
                if isinstance(step, CreateTopic):
                    await self._recorder.post(stored.raw, _creation_notice(step))
        return done, replies

    async def _carry_out_one(self, stored: StoredObject, step: MoveStep) -> Outcome:
        match step:
            case StartMove():
                return await self._start_move(stored, step)
            case ForgetMove():
                await self._forget_move(_key_of_move(stored, step.name))
            case CancelMove():
                await self._cancel_move(stored, step)
            case LimitMove():
                return await self._limit_move(stored, step)
        return Outcome.DONE

    async def _start_move(self, stored: StoredObject, step: StartMove) -> Outcome:
        try:
            created = await self._api.create(make_move(stored, step))
        except ObjectChanged:
            return Outcome.LOOK_AGAIN
        self._writer.keep_created(created)
        message = (
            f"PartitionReassignment {step.name} moves replicas of {format_count(len(step.partitions), 'partition')}"
        )
        notice = Notice(reason="ReplicasMove", message=message, occurrence=created["metadata"]["uid"])
        await self._recorder.post(stored.raw, notice)
        return Outcome.DONE

    async def _limit_move(self, stored: StoredObject, step: LimitMove) -> Outcome:
        known = self._store.get(_key_of_move(stored, step.name))
        if known is None:
            return Outcome.LOOK_AGAIN
        try:
            self._writer.keep(await self._api.patch_known_spec(known.raw, {"throttle": _make_throttle(step)}))
        except ObjectChanged:
            return Outcome.LOOK_AGAIN
        except ObjectGone:
            self._store.remove(known.key, known.uid)
            return Outcome.LOOK_AGAIN
        return Outcome.DONE

    async def _forget_move(self, key: Key) -> None:
        known = self._store.get(key)
        if known is not None:
            with suppress(ObjectGone):
                await self._api.delete(known.raw)
            self._store.remove(key, known.uid)

    async def _cancel_move(self, stored: StoredObject, step: CancelMove) -> None:
        key = _key_of_move(stored, step.name)
        known = self._store.get(key)
        if known is None:
            return
        message = f"PartitionReassignment {step.name} is cancelled, because {step.why}"
        await self._recorder.post(stored.raw, Notice(reason="MoveCancelled", message=message, occurrence=known.uid))
        try:
            await self._api.delete(known.raw)
            self._writer.keep_marked(await self._api.get(key))
        except ObjectGone:
            self._store.remove(key, known.uid)


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


def _is_going(stored: StoredObject) -> bool:
    return stored.raw["metadata"].get("deletionTimestamp") is not None


def _is_mere_progress(before: Status, decision: Plan[Status]) -> bool:
    """Return True if a decision has no effect, and its status differs only in numbers.

    A cluster that is no longer degraded counts as progress, so one that changes all the time is seldom written."""
    if not decision.is_progress or decision.steps or decision.notices:
        return False
    if decision.finalizer is not FinalizerWish.KEEP_AS_IS:
        return False
    recovered = decision.status.condition(ConditionType.DEGRADED)
    waits = {ConditionType.DEGRADED} if recovered is not None and recovered.status is ConditionStatus.FALSE else set()
    words = [
        [(each.type, each.status, each.reason, each.observed_generation) for each in status.conditions
         if each.type not in waits]
        for status in (before, decision.status)
    ]  # fmt: skip
    return words[0] == words[1]


def _key_of_move(owner: StoredObject, name: str) -> Key:
    return Key(PartitionReassignment.definition.kind, owner.key.namespace, name)


def _creation_notice(step: CreateTopic) -> Notice:
    partitions = step.assignment.partitions
    factor = max((len(each.replicas) for each in partitions.values()), default=0)
    message = (
        f"created topic {step.topic} with {format_count(len(partitions), 'partition')}, replication factor {factor}"
    )
    return Notice(reason="TopicCreated", message=message, occurrence=str(step.assignment.topic_id))


def _make_throttle(step: StartMove | LimitMove) -> Raw | None:
    return None if step.bytes_per_second is None else {"bytesPerSecond": step.bytes_per_second}


def make_move(stored: StoredObject, step: StartMove) -> Raw:
    """Return a PartitionReassignment that a topic or a plan owns. It is deleted together with its owner."""
    metadata = stored.raw["metadata"]
    owner = {"apiVersion": API_VERSION, "kind": stored.key.kind, "name": metadata["name"], "uid": metadata["uid"]}
    partitions = [
        {"topic": tp.topic, "partition": tp.partition, "replicas": [*to]}
        | ({"expectedReplicas": [*step.expected[tp]]} if tp in step.expected else {})
        for tp, to in step.partitions
    ]
    approval = Approval.REQUIRED if step.needs_approval else None
    windows = [each.model_dump(by_alias=True, mode="json", exclude_none=True) for each in step.windows]
    how = {
        "schedule": {"windows": windows} if windows else None,
        "throttle": _make_throttle(step),
        "maxConcurrentPartitions": step.max_concurrent_partitions,
        "approval": approval,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": PartitionReassignment.definition.kind,
        "metadata": {
            "name": step.name,
            "namespace": metadata["namespace"],
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "clusterRef": stored.raw["spec"]["clusterRef"],
            "partitions": partitions,
            **{name: value for name, value in how.items() if value is not None},
            "ttlSecondsAfterFinished": _MOVE_TTL_S,
        },
    }
