"""Carries out the steps of a plan: on the Kafka cluster, by its seam, and on the objects that an object owns."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import structlog

from controller_core.model.wording import format_count
from controller_operator.clusters.cluster import Reply
from controller_operator.kafka.actions import CreateTopic, Outcome
from controller_operator.kubernetes.object_api import ObjectApi, ObjectChanged, ObjectGone
from controller_operator.kubernetes.object_store import Key, ObjectStore, Raw, StoredObject
from controller_operator.metrics import OperatorMetrics
from controller_operator.plans.outcome import CancelMove, ForgetMove, MoveStep, Notice, StartMove, Step
from controller_operator.reconciling.access import Granted
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.reconciling.object_writer import ObjectWriter
from controller_operator.resources import PartitionReassignment
from controller_operator.resources.common import API_VERSION

_MOVE_TTL_S: Final = 24 * 3600
"""Seconds for which a topic's ended moves stay for people to read. A failed one is then tried again."""
_log = structlog.get_logger(__name__)


class StepRunner:
    """Carries out the steps of plans. Raises `ApiError`s, and the `ZkError`s that are no answer to a step itself."""

    def __init__(
        self,
        store: ObjectStore,
        api: ObjectApi,
        writer: ObjectWriter,
        recorder: EventRecorder,
        metrics: OperatorMetrics,
    ) -> None:
        self._store = store
        self._api = api
        self._writer = writer
        self._recorder = recorder
        self._metrics = metrics

    async def carry_out(
        self, stored: StoredObject, steps: Sequence[Step], grant: Granted
    ) -> tuple[list[Step], list[Reply]]:
        """Carry out the steps. Return the done parts of them, and the cluster's replies."""
        done: list[Step] = []
        replies: list[Reply] = []
        for step in steps:
            if isinstance(step, MoveStep):
                outcome = await self._carry_out_one(stored, step)
            else:
                carried = await grant.kafka.carry_out(step, grant.asking)
                step, outcome = carried.step, carried.outcome
                replies += [carried.reply] if carried.reply is not None else []
            self._metrics.actions.labels(type(step).__name__, outcome.value).inc()
            _log.info("done", object=str(stored.key), step=type(step).__name__, outcome=outcome.value)
            if outcome is Outcome.DONE:
                done.append(step)
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
                await self._cancel_move(stored, step.name)
        return Outcome.DONE

    async def _start_move(self, stored: StoredObject, step: StartMove) -> Outcome:
        try:
            created = await self._api.create(_move(stored, step))
        except ObjectChanged:
            return Outcome.LOOK_AGAIN
        self._writer.keep_created(created)
        message = f"PartitionReassignment {step.name} moves replicas of the topic"
        notice = Notice(reason="ReplicasMove", message=message, occurrence=created["metadata"]["uid"])
        await self._recorder.post(stored.raw, notice)
        return Outcome.DONE

    async def _forget_move(self, key: Key) -> None:
        known = self._store.get(key)
        if known is not None:
            with suppress(ObjectGone):
                await self._api.delete(known.raw)
            self._store.remove(key, known.uid)

    async def _cancel_move(self, stored: StoredObject, name: str) -> None:
        key = _key_of_move(stored, name)
        known = self._store.get(key)
        if known is None:
            return
        message = f"PartitionReassignment {name} is cancelled, because the spec now asks for other replicas"
        await self._recorder.post(stored.raw, Notice(reason="MoveCancelled", message=message, occurrence=known.uid))
        try:
            await self._api.delete(known.raw)
            self._writer.keep_marked(await self._api.get(key))
        except ObjectGone:
            self._store.remove(key, known.uid)


def _key_of_move(owner: StoredObject, name: str) -> Key:
    return Key(PartitionReassignment.definition.kind, owner.key.namespace, name)


def _creation_notice(step: CreateTopic) -> Notice:
    partitions = step.assignment.partitions
    factor = max((len(each.replicas) for each in partitions.values()), default=0)
    message = (
        f"created topic {step.topic} with {format_count(len(partitions), 'partition')}, replication factor {factor}"
    )
    return Notice(reason="TopicCreated", message=message, occurrence=str(step.assignment.topic_id))


def _move(stored: StoredObject, step: StartMove) -> Raw:
    """Return a PartitionReassignment that a topic owns. It is deleted together with the topic's object."""
    metadata = stored.raw["metadata"]
    owner = {"apiVersion": API_VERSION, "kind": stored.key.kind, "name": metadata["name"], "uid": metadata["uid"]}
    partitions = [{"topic": tp.topic, "partition": tp.partition, "replicas": [*to]} for tp, to in step.partitions]
    throttle = None if step.bytes_per_second is None else {"bytesPerSecond": step.bytes_per_second}
    how = {"throttle": throttle, "maxConcurrentPartitions": step.max_concurrent_partitions}
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
