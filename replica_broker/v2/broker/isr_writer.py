"""Writes the ISR of design v2 (`write r.partition.ISR & r.partition.CUR in ZK`) whenever it changes.

The seed writes it only at a leader's start, although followers come and go. So the leader maintains the ISR as in seed
004, and writes it here with its CUR, fenced by its epoch and by the known version.
"""

from controller_core.model.ids import BrokerId, PartitionEpoch
from controller_core.wire.messages import ErrorCode
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Conflict, ZkError, ZkSession
from replica_broker.replicas.seams import IsrRefused, IsrToWrite, IsrWriteUncertain, IsrWritten
from replica_broker.v2.znodes.partitions import read_partition


class V2IsrWriter:
    """An `IsrWriter` that writes the znodes of design v2."""

    def __init__(self, zk: ZkSession) -> None:
        self._zk = zk

    async def write(self, isr: IsrToWrite) -> IsrWritten | IsrRefused:
        """Write an ISR. See `IsrWriter`."""
        try:
            return await self._write(isr)
        except (ZkError, MalformedZnode) as error:
            raise IsrWriteUncertain(f"{type(error).__name__}: {error}") from error

    async def _write(self, asked: IsrToWrite) -> IsrWritten | IsrRefused:
        znodes = await read_partition(self._zk, asked.topic_partition)
        if znodes.epoch != asked.leader_epoch:
            return IsrRefused(error_code=ErrorCode.fenced_leader_epoch)
        if znodes.partition_epoch != asked.partition_epoch:
            # Only this broker writes in its epoch, so the other version is its own write with a lost answer.
            return _make_outcome(asked, znodes.isr, znodes.partition_epoch)
        try:
            await self._zk.transact(
                [
                    znodes.make_epoch_check(asked.leader_epoch),
                    *znodes.make_isr_writes(asked.isr, assigned=znodes.assigned),
                ]
            )
        except Conflict as error:
            raise IsrWriteUncertain("another write came in between") from error
        return _make_outcome(asked, asked.isr, PartitionEpoch(asked.partition_epoch + 1))


def _make_outcome(asked: IsrToWrite, isr: tuple[BrokerId, ...], version: PartitionEpoch) -> IsrWritten:
    return IsrWritten(leader_epoch=asked.leader_epoch, partition_epoch=version, isr=isr)
