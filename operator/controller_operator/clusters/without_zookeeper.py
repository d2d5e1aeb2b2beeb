"""A cluster without ZooKeeper: observed by polling its brokers, and changed by requests to its controller."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import structlog

from controller_core.client.errors import Unreachable
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import TopicName
from controller_core.model.snapshot import Snapshot
from controller_operator.clusters.cluster import Asking, Carried, ClusterStep, Reply, summarize_moves
from controller_operator.clusters.throttle_record import OpenRecord, RefusedError, ask_for_throttle
from controller_operator.kafka.actions import (
    AddPartitions,
    AlterTopicConfig,
    CreateTopic,
    MarkTopicForDeletion,
    Outcome,
    SubmitPreferredElection,
    SubmitReassignment,
)
from controller_operator.kafka.controller_reach import ControllerReach, RefusingClient
from controller_operator.kafka.requests.cancellations import CancelReassignment, cancel_reassignment
from controller_operator.kafka.requests.elections import ElectUnclean, elect_preferred, elect_unclean
from controller_operator.kafka.requests.features import UpdateFeatures, update_features_singly
from controller_operator.kafka.requests.moves import submit
from controller_operator.kafka.requests.topics import MissTopic, TopicReply, ask_for_topic
from controller_operator.kafka.throttle_steps import RemoveThrottle, SetThrottle, ThrottleReply, ThrottleStep
from controller_operator.kafka.write_limits import WriteLimits
from controller_operator.kubernetes.object_api import ApiError
from controller_operator.observation.observation import Observation
from controller_operator.observation.poller import ClusterPoller

_NO_LIMITS: Final = WriteLimits(max_bytes=1 << 40)
"""No limits here: the controller itself refuses a request that is too large."""
_log = structlog.get_logger(__name__)
_Changes = CreateTopic | AddPartitions | AlterTopicConfig | MarkTopicForDeletion


class ClusterWithoutZooKeeper:
    """See `Cluster`."""

    def __init__(self, poller: ClusterPoller, reach: ControllerReach, open_record: OpenRecord) -> None:
        self._poller = poller
        self._reach = reach
        self._open_record = open_record
        self._limiting = asyncio.Lock()

    @property
    def observation(self) -> Observation:
        return self._poller.observation

    @property
    def limits(self) -> WriteLimits:
        return _NO_LIMITS

    def start(self) -> None:
        self._poller.start()

    async def stop(self) -> None:
        await self._poller.stop()

    def add_listener(self, listener: Callable[[Observation], None]) -> None:
        self._poller.add_listener(listener)

    async def refresh(self, after: Sequence[object] | None = None) -> Snapshot:
        return await self._poller.refresh(_list_touched_topics(after or ()))

    async def carry_out(self, step: ClusterStep, asking: Asking) -> Carried:
        client = self._client(asking)
        if isinstance(step, SubmitReassignment):
            return summarize_moves(step, await submit(step, client))
        if isinstance(step, SetThrottle | RemoveThrottle):
            reply: Reply = await self._limit(step, client)
        else:
            reply = await _ask(step, client)
        is_done = reply.is_done if isinstance(reply, TopicReply) else reply.trouble is None
        return Carried(step=step, outcome=Outcome.DONE if is_done else Outcome.LOOK_AGAIN, reply=reply)

    async def find_throttle_owners(self) -> frozenset[str] | None:
        try:
            record, _ = await self._open_record(self._cluster_id).read()
            return frozenset(record.throttles)
        except (ApiError, RefusedError) as error:
            _log.info("throttles not known", error=f"{type(error).__name__}: {error}")
            return None

    async def _limit(self, step: ThrottleStep, client: ControllerClient) -> ThrottleReply:
        """Run one at a time, because all share one record."""
        record = self._open_record(self._cluster_id)
        broker = self._poller.open_client()
        try:
            async with self._limiting:
                return await ask_for_throttle(step, record, broker, client)
        finally:
            broker.close()

    @property
    def _cluster_id(self) -> str:
        """The id of the Kafka cluster. Steps need a view, and each view has it."""
        view = self._poller.observation.view
        return (view.cluster_id if view is not None else None) or "unknown"

    def _client(self, asking: Asking) -> ControllerClient:
        """Return a client of the controller. Without a leader it refuses at once: brokers would keep a request and
        forward it long after its sender has given up."""
        view = self._poller.observation.view
        if view is not None and view.controller is None:
            return RefusingClient(Unreachable("the controllers have no leader"))
        return self._reach.client(self._poller.servers, asking.listener.security, asking.client_id)


async def _ask(
    step: _Changes | MissTopic | UpdateFeatures | CancelReassignment | ElectUnclean | SubmitPreferredElection,
    client: ControllerClient,
) -> Reply:
    match step:
        case UpdateFeatures():
            return await update_features_singly(step, client)
        case CancelReassignment():
            return await cancel_reassignment(step, client)
        case ElectUnclean():
            return await elect_unclean(step, client)
        case SubmitPreferredElection():
            return await elect_preferred(step, client)
        case _:
            return await ask_for_topic(step, client)


def _list_touched_topics(steps: Sequence[object]) -> Iterator[TopicName]:
    """Return the topics whose configurations the steps may have changed."""
    return (step.topic for step in steps if isinstance(step, _Changes))
