"""Carries out what a plan says: writes to ZooKeeper, requests to the cluster's controller, objects that an object owns."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import structlog

from controller_core.zk import paths
from controller_operator.kafka.actions import Action, Outcome, SubmitReassignment, execute, touched_paths
from controller_operator.kafka.broker_listeners import OpenClient
from controller_operator.kafka.cancel_requests import CancelReassignment, CancelReply, cancel_reassignment
from controller_operator.kafka.controller_reach import ControllerReach
from controller_operator.kafka.election_requests import ElectionReply, ElectUnclean, elect_unclean
from controller_operator.kafka.feature_requests import (
    FeatureReply,
    NoBootstrapServerError,
    UpdateFeatures,
    bootstrap_addresses,
    can_be_asked,
    update_features,
)
from controller_operator.kafka.move_requests import MoveReply, submit_by_request, submit_by_znode
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle, ThrottleStep, carry_out_throttle
from controller_operator.kubernetes.object_api import ObjectApi, ObjectChanged, ObjectGone
from controller_operator.kubernetes.object_store import Key, ObjectStore, Raw, StoredObject
from controller_operator.metrics import OperatorMetrics
from controller_operator.plans.outcome import ForgetMove, Notice, StartMove, Step
from controller_operator.reconciling.access import Granted
from controller_operator.reconciling.event_recorder import EventRecorder
from controller_operator.reconciling.object_writer import ObjectWriter
from controller_operator.resources import PartitionReassignment
from controller_operator.resources.common import API_VERSION

Request = UpdateFeatures | CancelReassignment | ElectUnclean
Reply = FeatureReply | CancelReply | ElectionReply | MoveReply
ZooKeeperOrObjectStep = Action | ThrottleStep | StartMove | ForgetMove
_MOVE_TTL_S: Final = 24 * 3600
"""A topic's moves stay for people to look at for so long; one that failed is then tried again."""
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
        open_client: OpenClient,
    ) -> None:
        """`open_client` makes a client of a cluster's controller."""
        self._store = store
        self._api = api
        self._writer = writer
        self._recorder = recorder
        self._metrics = metrics
        self._reach = ControllerReach(open_client)

    async def carry_out(
        self, stored: StoredObject, steps: Sequence[Step], grant: Granted
    ) -> tuple[list[Step], list[Reply]]:
        """Does the steps; returns those that are done, as far as they are, and what the controller answered."""
        done: list[Step] = []
        replies: list[Reply] = []
        for step in steps:
            if isinstance(step, Request):
                replies.append(await self._ask(step, grant))
                outcome = Outcome.LOOK_AGAIN if replies[-1].trouble else Outcome.DONE
            elif isinstance(step, SubmitReassignment):
                reply = await self._submit(step, grant)
                replies.append(reply)
                outcome = Outcome.DONE if reply.accepted else Outcome.LOOK_AGAIN
                step = SubmitReassignment(
                    partitions={tp: to for tp, to in step.partitions.items() if tp in reply.accepted}
                )
            else:
                outcome = await self._carry_out_one(stored, step, grant)
            self._metrics.actions.labels(type(step).__name__, outcome.value).inc()
            _log.info("done", object=str(stored.key), step=type(step).__name__, outcome=outcome.value)
            if outcome is Outcome.DONE:
                done.append(step)
        return done, replies

    async def _ask(self, step: Request, grant: Granted) -> Reply:
        try:
            bootstrap = bootstrap_addresses(grant.cluster.spec.bootstrap_servers, grant.view, grant.listener)
        except NoBootstrapServerError as error:
            return _not_asked(step, str(error))
        client = self._reach.client(bootstrap, grant.listener.security)
        match step:
            case CancelReassignment():
                return await cancel_reassignment(step, client)
            case ElectUnclean():
                return await elect_unclean(step, client)
            case UpdateFeatures():
                return await update_features(step, client)

    async def _submit(self, step: SubmitReassignment, grant: Granted) -> MoveReply:
        configured, session = grant.cluster.spec.bootstrap_servers, grant.observer.session
        if not can_be_asked(configured, grant.view, grant.listener):
            return await submit_by_znode(step, session)
        try:
            bootstrap = bootstrap_addresses(configured, grant.view, grant.listener)
        except NoBootstrapServerError as error:
            return MoveReply(step=step, trouble=str(error))
        client = self._reach.client(bootstrap, grant.listener.security)
        return await submit_by_request(step, client, session)

    async def _carry_out_one(self, stored: StoredObject, step: ZooKeeperOrObjectStep, grant: Granted) -> Outcome:
        match step:
            case StartMove():
                return await self._start_move(stored, step)
            case ForgetMove():
                await self._forget_move(Key(PartitionReassignment.definition.kind, stored.key.namespace, step.name))
            case SetThrottle() | RemoveThrottle():
                return await carry_out_throttle(step, grant.observer.session)
            case _:
                return await execute(step, grant.observer.session)
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


def _not_asked(step: Request, why: str) -> Reply:
    match step:
        case CancelReassignment():
            return CancelReply(step=step, trouble=why)
        case ElectUnclean():
            return ElectionReply(step=step, trouble=why)
        case UpdateFeatures():
            return FeatureReply(step=step, trouble=why)


def touched(steps: Sequence[Step]) -> list[str]:
    """The watched znodes in which the effect of the steps shows."""
    other = StartMove | ForgetMove | ThrottleStep | Request
    found = [path for step in steps if not isinstance(step, other) for path in touched_paths(step)]
    elected = [tp for step in steps if isinstance(step, ElectUnclean) for tp in step.partitions]
    found += [paths.partition_state(partition) for partition in elected]
    cancelled = [tp for step in steps if isinstance(step, CancelReassignment) for tp in step.partitions]
    found += [paths.REASSIGN_PARTITIONS, *{paths.topic(tp.topic) for tp in cancelled}] if cancelled else []
    return [*found, paths.FEATURE] if any(isinstance(step, UpdateFeatures) for step in steps) else found


def _move(stored: StoredObject, step: StartMove) -> Raw:
    """The PartitionReassignment that a topic owns. It goes with the topic's object."""
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
