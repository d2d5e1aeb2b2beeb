"""The requests of this broker to the controller: AlterPartition, AllocateProducerIds, ControlledShutdown.

The last UpdateMetadata named the controller. A NOT_CONTROLLER or a lost connection is no answer; the caller retries,
because the next controller announces itself. Each request has its own connection, because requests are rare.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import structlog
from kio.schema.allocate_producer_ids.v0 import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kio.schema.alter_partition.v3 import request as asked_isr
from kio.schema.alter_partition.v3 import response as answered_isr
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i8, i32, i64
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import AdminError
from controller_core.client.transport.request_client import Address, RequestClient, is_refused_by_another
from controller_core.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, PartitionEpoch, PartitionId, TopicId
from controller_core.model.metadata import LeaderAndIsr, LeaderRecoveryState, PartitionState
from controller_core.wire.connections.broker_properties import NO_FILE, SourceOfListener
from controller_core.wire.messages import (
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from controller_core.wire.messages.alter_partition import AnsweredIsr, AnsweredTopic, AskedIsr, AskedTopic
from replica_broker.membership.node import Node
from replica_broker.replicas.seams import IsrWriteUncertain

log = structlog.get_logger()

RETRY_S: Final = 0.1
REQUEST_TIMEOUT_MS: Final = 30_000
"""Kafka's `controller.socket.timeout.ms`."""
_NOT_SAID: Final = ControllerEpoch(-1)
"""AlterPartition responses have no controller epoch of the state."""

Response = TypeVar("Response", bound=ResponsePayload)


class ProducerIdBlock(NamedTuple):
    """A range of ids that only this broker has."""

    start: int
    length: int


class NoController(Exception):
    """The controller is unknown, did not answer, or is no longer the controller. Retriable after a pause."""


class ControllerChannel:
    """Sends requests to the current controller, with this broker's epoch and its listener's security settings."""

    def __init__(
        self, node: Node, *, request_timeout_ms: int = REQUEST_TIMEOUT_MS, security: SourceOfListener = NO_FILE.source
    ) -> None:
        self._node = node
        self._timeout_ms = request_timeout_ms
        self._security = security
        self._altering = asyncio.Lock()

    async def alter_partition(self, topics: Sequence[AskedTopic]) -> AlterPartitionResponse:
        """Send the proposed ISRs to the controller. See `AlterPartitionChannel`.

        Only one request is in flight, so that an older ISR never overtakes a newer one.
        """
        async with self._altering:
            request = asked_isr.AlterPartitionRequest(
                broker_id=WireBrokerId(self._node.id),
                broker_epoch=i64(self._node.epoch),
                topics=tuple(map(_make_topic, topics)),
            )
            try:
                response = await self._ask(request, answered_isr.AlterPartitionResponse)
            except NoController as error:
                await asyncio.sleep(RETRY_S)
                raise IsrWriteUncertain(str(error)) from error
            if response.error_code is not ErrorCode.none:
                await asyncio.sleep(RETRY_S)
                raise IsrWriteUncertain(f"the controller refuses AlterPartition: {response.error_code.name}")
            return AlterPartitionResponse(
                error_code=response.error_code, topics=tuple(map(_parse_topic, response.topics))
            )

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """Return a new block of producer ids. Retries until a controller gives one."""
        while True:
            request = AllocateProducerIdsRequest(
                broker_id=WireBrokerId(self._node.id), broker_epoch=i64(self._node.epoch)
            )
            try:
                response = await self._ask(request, AllocateProducerIdsResponse)
            except NoController as error:
                log.info("no producer ids yet", why=str(error))
            else:
                if response.error_code is ErrorCode.none:
                    return ProducerIdBlock(int(response.producer_id_start), int(response.producer_id_len))
                log.warning("no producer ids yet", why=response.error_code.name)
            await asyncio.sleep(RETRY_S)

    async def request_controlled_shutdown(self) -> ControlledShutdownResponse:
        """Ask the controller for a controlled shutdown. Raises `NoController`."""
        request = ControlledShutdownRequest(broker_id=self._node.id, broker_epoch=self._node.epoch)
        return await self._ask(request, ControlledShutdownResponse)

    async def _ask(self, request: RequestPayload, response_type: type[Response]) -> Response:
        endpoint = self._node.controller()
        if endpoint is None:
            raise NoController("no controller is known")
        address = Address(endpoint.host, endpoint.port)
        client = RequestClient(
            [address],
            client_id=str(self._node.id),
            timeout_ms=self._timeout_ms,
            security=self._security(endpoint.listener, endpoint.security_protocol),
        )
        try:
            response = await client.ask_one(request, response_type)
        except AdminError as error:
            raise NoController(str(error)) from error
        if is_refused_by_another(response):
            raise NoController(f"{address} is no longer the controller")
        return response


def _make_topic(topic: AskedTopic) -> asked_isr.TopicData:
    return asked_isr.TopicData(topic_id=topic.topic_id, partitions=tuple(map(_make_partition, topic.partitions)))


def _make_partition(asked: AskedIsr) -> asked_isr.PartitionData:
    return asked_isr.PartitionData(
        partition_index=i32(asked.partition),
        leader_epoch=i32(asked.leader_epoch),
        new_isr_with_epochs=tuple(asked_isr.BrokerState(broker_id=WireBrokerId(member)) for member in asked.isr),
        leader_recovery_state=i8(asked.leader_recovery_state),
        partition_epoch=i32(asked.partition_epoch),
    )


def _parse_topic(topic: answered_isr.TopicData) -> AnsweredTopic:
    return AnsweredTopic(
        None if topic.topic_id is None else TopicId(topic.topic_id), [_parse_partition(one) for one in topic.partitions]
    )


def _parse_partition(answer: answered_isr.PartitionData) -> AnsweredIsr:
    partition = PartitionId(answer.partition_index)
    if answer.error_code is not ErrorCode.none:
        return AnsweredIsr(partition, answer.error_code)
    leadership = LeaderAndIsr(
        leader=BrokerId(answer.leader_id),
        isr=tuple(BrokerId(member) for member in answer.isr),
        leader_epoch=LeaderEpoch(answer.leader_epoch),
        leader_recovery_state=LeaderRecoveryState(answer.leader_recovery_state),
    )
    return AnsweredIsr(
        partition,
        PartitionState(
            leader_and_isr=leadership,
            controller_epoch=_NOT_SAID,
            partition_epoch=PartitionEpoch(answer.partition_epoch),
        ),
    )
