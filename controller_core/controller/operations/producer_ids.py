"""AllocateProducerIds: the next block of ids for a broker's idempotent and transactional producers (KIP-730)."""

from functools import partial
from typing import Final

import structlog
from kio.schema.errors import ErrorCode
from kio.schema.types import ProducerId
from kio.static.primitive import i32

from controller_core.controller.term.rights import Writes
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.wire.messages import NO_THROTTLE, AllocateProducerIdsRequest, AllocateProducerIdsResponse
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode, ProducerIdBlock
from controller_core.zk.compare_and_set import compare_and_set, make_reader, put
from controller_core.zk.session import WriteOp, ZkNode

log = structlog.get_logger()

BLOCK_SIZE = 1000
"""Kafka's PRODUCER_ID_BLOCK_SIZE."""
LAST_FIRST: Final = (1 << 63) - BLOCK_SIZE
"""The first id of the last block: ids have 64 bits."""


async def on_allocate_producer_ids(term: Writes, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    """Allocate the block after the last one, and record it before answering."""
    broker = term.state.brokers.get(BrokerId(request.broker_id))
    if broker is None:
        return make_refusal(ErrorCode.broker_id_not_registered)
    if broker.epoch != BrokerEpoch(request.broker_epoch):
        return make_refusal(ErrorCode.stale_broker_epoch)
    try:
        recorded = await compare_and_set(
            make_reader(term.zk, paths.PRODUCER_ID_BLOCK), partial(_record, broker.id), term.writer.transact
        )
    except MalformedZnode as error:
        term.state.unusable.report(
            paths.PRODUCER_ID_BLOCK, "unreadable producer id block: no ids are allocated until it is repaired", error
        )
        return make_refusal(ErrorCode.unknown_server_error)
    term.state.unusable.clear(paths.PRODUCER_ID_BLOCK)
    first = _first_free(recorded.found)
    log.info("producer ids allocated", broker=broker.id, first=first, count=BLOCK_SIZE)
    return AllocateProducerIdsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        producer_id_start=ProducerId(first),
        producer_id_len=i32(BLOCK_SIZE),
    )


def make_refusal(error_code: ErrorCode) -> AllocateProducerIdsResponse:
    """Return the response without ids."""
    return AllocateProducerIdsResponse(
        throttle_time=NO_THROTTLE, error_code=error_code, producer_id_start=ProducerId(0), producer_id_len=i32(0)
    )


def _first_free(node: ZkNode | None) -> int:
    """Return the first id that is free. Raises `MalformedZnode`, also if none is left."""
    first = codecs.decode_producer_id_block(node.data).last + 1 if node and node.data else 0
    if first > LAST_FIRST:
        raise MalformedZnode(
            paths.PRODUCER_ID_BLOCK, f"all producer ids are allocated, the last block ends at {first - 1}"
        )
    return first


def _record(broker: BrokerId, node: ZkNode | None) -> list[WriteOp]:
    """Record the block after the last one as allocated. Raises `MalformedZnode`."""
    first = _first_free(node)
    data = codecs.encode_producer_id_block(ProducerIdBlock(broker=broker, first=first, last=first + BLOCK_SIZE - 1))
    return [put(paths.PRODUCER_ID_BLOCK, node, data)]
