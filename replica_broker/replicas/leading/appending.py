"""Appends the producers' messages to the leader's log, and waits until they are committed if the producer asks for it.

With acks=all, a message is acknowledged when the high watermark is past it: all of the ISR has it then, and the ISR has
at least `min.insync.replicas` members. A producer that gets no answer in time may send the message again, although it
may be in the log.
"""

import asyncio
from collections.abc import Callable

from controller_core.controller.loop.clock import Clock
from replica_broker.counters import BrokerCounters
from replica_broker.log.log import Appended
from replica_broker.log.producers.markers import MARKER_BYTES, EndOfTransaction
from replica_broker.replicas.errors import (
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeader,
    ReplicationTimedOut,
    StorageFailed,
)
from replica_broker.replicas.leading.committing import Committing
from replica_broker.replicas.partition import Partition

ALL = -1
"""The `acks` of a producer that waits for the whole ISR."""


class Appending:
    """Appends to the partitions that this broker leads."""

    def __init__(self, committing: Committing, clock: Clock, counters: BrokerCounters) -> None:
        self._committing = committing
        self._counters = counters
        self._clock = clock

    def append(self, partition: Partition, records: bytes, *, acks: int) -> Appended:
        """Append batches. Raises `DiskError`, and `ReplicaRefused` and `LogError` if nothing was appended."""

        def write() -> Appended:
            return partition.log.append_as_leader(records, partition.leader_epoch, self._clock.now_ms())

        appended = self._append(partition, write, size_bytes=len(records), acks=acks)
        if not appended.is_duplicate:
            self._counters.count_received_from_producer(len(records), appended.last_offset - appended.first_offset + 1)
        return appended

    def append_marker(self, partition: Partition, end: EndOfTransaction) -> Appended:
        """Append a transaction's end marker, which must reach the whole ISR. Raises as `append`."""

        def write() -> Appended:
            return partition.log.append_marker(end, partition.leader_epoch, self._clock.now_ms())

        return self._append(partition, write, size_bytes=MARKER_BYTES, acks=ALL)

    def _append(self, partition: Partition, write: Callable[[], Appended], *, size_bytes: int, acks: int) -> Appended:
        partition.require_leader()
        needed = self._committing.min_insync_replicas(partition)
        if acks == ALL and len(partition.isr) < needed:
            raise NotEnoughReplicas(
                partition.topic_partition, f"{len(partition.isr)} replicas are in sync, {needed} must be"
            )
        end_before = partition.replica.end_offset
        appended = write()
        if partition.replica.end_offset > end_before:
            partition.note_append(size_bytes)
        self._committing.advance(partition)
        partition.notify()
        return appended

    async def wait_until_committed(
        self, partition: Partition, end_offset: int, *, reigns: int, timeout_ms: int
    ) -> None:
        """Wait until everything before an offset is committed in the reign of its append.

        Raises `NotEnoughReplicasAfterAppend`, `ReplicationTimedOut`, `NotLeader`, `StorageFailed`.
        """
        woken = asyncio.Event()
        with partition.wake_on_change(woken.set):
            try:
                async with asyncio.timeout(timeout_ms / 1000):
                    while not self._is_committed(partition, end_offset, reigns):
                        woken.clear()
                        await woken.wait()
            except TimeoutError as error:
                raise ReplicationTimedOut(
                    partition.topic_partition,
                    f"the message did not reach all of the ISR {partition.isr} within {timeout_ms} ms",
                ) from error

    def _is_committed(self, partition: Partition, end_offset: int, reigns: int) -> bool:
        if partition.is_offline:
            raise StorageFailed(partition.topic_partition, "its log directory failed")
        if partition.reigns != reigns:
            raise NotLeader(partition.topic_partition, f"the known leader is broker {partition.leader}")
        if partition.high_watermark < end_offset:
            return False
        needed = self._committing.min_insync_replicas(partition)
        if len(partition.isr) < needed:
            raise NotEnoughReplicasAfterAppend(
                partition.topic_partition, f"{len(partition.isr)} replicas are in sync, {needed} must be"
            )
        return True
