"""ISR writes by the leader itself, as in seed 004, and as in brokers before inter-broker protocol 2.7.

`the update is conditional and only succeeds if the version of the LeaderAndISR path in ZK is the same as
leader.partition.LeaderAndISRVersionInZK`: so a replaced leader cannot change anything (discussion 3). If the version
differs, the write may still have been this leader's own, with a lost answer; the content shows it.

The controller does not watch every state. Changes are collected and announced in `/isr_change_notification`.
"""

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import PartitionEpoch, TopicPartition
from controller_core.model.metadata import LeaderAndIsr, PartitionState
from controller_core.supervision import start_task
from controller_core.wire.messages import ErrorCode
from controller_core.zk import codecs, paths
from controller_core.zk.codecs.json_fields import MalformedZnode
from controller_core.zk.session import Conflict, Create, CreateMode, SetData, ZkError, ZkSession, ZkVersion
from replica_broker.replicas.seams import IsrRefused, IsrToWrite, IsrWriteUncertain, IsrWritten
from replica_broker.replicas.settings import ReplicaSettings

log = structlog.get_logger()


class StateZnodeWriter:
    """An `IsrWriter` that writes the state znode."""

    def __init__(self, zk: ZkSession, settings: ReplicaSettings, clock: Clock) -> None:
        self._zk = zk
        self._settings = settings
        self._clock = clock
        self._untold: set[TopicPartition] = set()
        self._is_telling = False

    async def write(self, isr: IsrToWrite) -> IsrWritten | IsrRefused:
        """Write an ISR to its state znode. See `IsrWriter`."""
        try:
            outcome = await self._write(isr)
        except MalformedZnode as error:
            log.error("a partition state is unreadable", partition=str(isr.topic_partition), reason=str(error))
            return IsrRefused(error_code=ErrorCode.invalid_update_version)
        except ZkError as error:
            raise IsrWriteUncertain(f"{type(error).__name__}: {error}") from error
        if isinstance(outcome, IsrWritten):
            self._tell(isr.topic_partition)
        return outcome

    async def _write(self, isr: IsrToWrite) -> IsrWritten | IsrRefused:
        path = paths.partition_state(isr.topic_partition)
        present = await self._read(isr.topic_partition)
        if present is None:
            return IsrRefused(error_code=ErrorCode.unknown_topic_or_partition)
        wanted = LeaderAndIsr(
            leader=isr.leader,
            isr=isr.isr,
            leader_epoch=isr.leader_epoch,
            leader_recovery_state=isr.recovery_state,
        )
        if present.partition_epoch != isr.partition_epoch:
            return _outcome_of_another_version(present, wanted)
        data = codecs.encode_partition_state(wanted, present.controller_epoch)
        try:
            await self._zk.transact([SetData(path=path, data=data, version=ZkVersion(isr.partition_epoch))])
        except Conflict:
            present = await self._read(isr.topic_partition)
            if present is None:
                return IsrRefused(error_code=ErrorCode.unknown_topic_or_partition)
            return _outcome_of_another_version(present, wanted)
        return _make_outcome(wanted, PartitionEpoch(isr.partition_epoch + 1))

    async def _read(self, topic_partition: TopicPartition) -> PartitionState | None:
        (node,) = await self._zk.read_many([paths.partition_state(topic_partition)])
        return None if node is None else codecs.decode_partition_state(topic_partition, node)

    def _tell(self, topic_partition: TopicPartition) -> None:
        self._untold.add(topic_partition)
        if not self._is_telling:
            self._is_telling = True
            start_task(self._tell_all(), name="tell the controller of ISRs")

    async def _tell_all(self) -> None:
        try:
            while self._untold:
                await self._clock.sleep_ms(self._settings.isr_notification_interval_ms)
                telling = frozenset(self._untold)
                data = codecs.encode_partitions(sorted(telling))
                mode = CreateMode.PERSISTENT_SEQUENTIAL
                try:
                    await self._zk.transact([Create(path=paths.ISR_CHANGE_PREFIX, data=data, mode=mode)])
                except ZkError as error:
                    log.warning(
                        "the controller could not be notified of ISR changes", reason=f"{type(error).__name__}: {error}"
                    )
                else:
                    self._untold -= telling
        finally:
            self._is_telling = False


def _outcome_of_another_version(present: PartitionState, wanted: LeaderAndIsr) -> IsrWritten | IsrRefused:
    if present.leader_and_isr == wanted:
        return _make_outcome(wanted, present.partition_epoch)
    return IsrRefused(error_code=ErrorCode.invalid_update_version)


def _make_outcome(state: LeaderAndIsr, version: PartitionEpoch) -> IsrWritten:
    return IsrWritten(
        leader_epoch=state.leader_epoch,
        partition_epoch=version,
        isr=state.isr,
        recovery_state=state.leader_recovery_state,
    )
