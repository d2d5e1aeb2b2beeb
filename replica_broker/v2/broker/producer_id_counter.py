"""Blocks of producer ids without a controller, from a counter znode with conditional writes."""

from typing import Final

from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import compare_and_set, make_reader
from controller_core.zk.session import SetData, WriteOp, ZkNode, ZkSession
from replica_broker.membership.controller_channel import ProducerIdBlock
from replica_broker.v2.znodes import paths

BLOCK_LENGTH: Final = 1_000
"""The size that Kafka's controllers use."""


async def allocate_producer_ids(zk: ZkSession) -> ProducerIdBlock:
    """Return a new block of ids. Raises the errors of ZooKeeper, `MalformedZnode` and `Contended`."""

    def decide(present: ZkNode | None) -> list[WriteOp]:
        return [
            SetData(
                path=paths.PRODUCER_IDS,
                data=str(_next(present) + BLOCK_LENGTH).encode(),
                version=_there(present).version,
            )
        ]

    settled = await compare_and_set(make_reader(zk, paths.PRODUCER_IDS), decide, zk.transact)
    return ProducerIdBlock(start=_next(settled.found), length=BLOCK_LENGTH)


def _there(present: ZkNode | None) -> ZkNode:
    if present is None:
        raise MalformedZnode(paths.PRODUCER_IDS, "it does not exist")
    return present


def _next(present: ZkNode | None) -> int:
    data = _there(present).data
    if data and not data.isdigit():
        raise MalformedZnode(paths.PRODUCER_IDS, "it is not a number")
    return int(data or b"0")
