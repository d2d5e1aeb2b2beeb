"""InitProducerId: a unique id for each idempotent producer, from blocks of the controller.

A new block is requested when the last one is used up; concurrent requests share it. The rest of a block is lost at the
broker's end, as in Kafka. Producers with a transactional.id need a coordinator, which this broker never is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.init_producer_id.v4 import InitProducerIdRequest, InitProducerIdResponse
from kio.schema.types import ProducerId
from kio.static.primitive import i16

from controller_core.admin.rights import EVERYTHING, Rights
from controller_core.model.authorization.acls import (
    THE_CLUSTER,
    Operation,
    Resource,
    ResourceType,
)
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.membership.controller_channel import ProducerIdBlock

VERSIONS: Final = Versions(InitProducerIdRequest, oldest=0)

PATIENCE_S: Final = 10.0
"""Seconds that a producer waits for a block before it is told to retry."""
_NO_EPOCH: Final = i16(-1)
_FIRST_EPOCH: Final = i16(0)


class ProducerIds:
    """Assigns producer ids. `allocate` asks the controller until it gets a block."""

    def __init__(self, allocate: Callable[[], Awaitable[ProducerIdBlock]]) -> None:
        self._allocate = allocate
        self._left: Iterator[int] = iter(())
        self._turn = asyncio.Lock()

    async def next(self) -> int:
        """Return an id. Raises `TimeoutError` if no controller gives one in time."""
        async with asyncio.timeout(PATIENCE_S), self._turn:
            producer_id = next(self._left, None)
            while producer_id is None:
                block = await self._allocate()
                self._left = iter(range(block.start, block.start + block.length))
                producer_id = next(self._left, None)
            return producer_id


async def on_init_producer_id(
    ids: ProducerIds, request: InitProducerIdRequest, rights: Rights = EVERYTHING
) -> InitProducerIdResponse:
    """Return a new id with epoch 0, for a producer that starts or has lost its sequence.

    It needs IdempotentWrite on the cluster, or the right to write any topic.
    """
    refusal = _why_not(request, rights)
    if refusal is not None:
        return _refuse(refusal)
    if request.transactional_id is not None:
        return _refuse(ErrorCode.not_coordinator if request.transactional_id else ErrorCode.invalid_request)
    try:
        producer_id = await ids.next()
    except TimeoutError:
        return _refuse(ErrorCode.coordinator_load_in_progress)  # Kafka's answer, too: clients retry after it
    return InitProducerIdResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        producer_id=ProducerId(producer_id),
        producer_epoch=_FIRST_EPOCH,
    )


def _why_not(request: InitProducerIdRequest, rights: Rights) -> ErrorCode | None:
    if request.transactional_id is not None:
        transactional_id = Resource(ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        is_allowed = rights.may(Operation.WRITE, transactional_id)
        return None if is_allowed else ErrorCode.transactional_id_authorization_failed
    if rights.may_on_any(Operation.WRITE, ResourceType.TOPIC) or rights.may(Operation.IDEMPOTENT_WRITE, THE_CLUSTER):
        return None
    return ErrorCode.cluster_authorization_failed


def _refuse(error_code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(throttle_time=NO_THROTTLE, error_code=error_code, producer_epoch=_NO_EPOCH)
