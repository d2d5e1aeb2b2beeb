"""DeleteRecords (KIP-107): deletes all messages before a committed offset.

The leader raises its log start and reports it in fetch responses. Followers do the same and report it in their next
fetch. The smallest log start of the leader and its live followers is the low watermark. The request is answered when
that reaches the offset. Dead followers are not waited for; they delete when they are back. The log start is on disk
before the answer, so that no crash restores deleted messages.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.wire.messages import ErrorCode
from replica_broker.log.errors import LogError
from replica_broker.replicas.errors import BeyondHighWatermark, NotDeletable, NotLeader, ReplicaRefused
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.requests import TO_HIGH_WATERMARK, Deleted
from replica_broker.replicas.storage import Storage

Find = Callable[[TopicPartition], Partition]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Deletion:
    """A pending deletion: all live replicas must reach the log start offset in this reign of the leader."""

    partition: Partition
    offset: int
    reigns: int


class Deleting:
    """Deletes from the partitions that this broker leads. `is_alive` returns True for a live broker."""

    def __init__(self, find: Find, storage: Storage, is_alive: Callable[[BrokerId], bool]) -> None:
        self._find = find
        self._storage = storage
        self._is_alive = is_alive
        self._waiting: set[asyncio.Event] = set()

    def on_brokers_changed(self) -> None:
        """Wake all waiters, because a follower that they wait for may be dead now."""
        for event in self._waiting:
            event.set()

    async def delete(self, offsets: Mapping[TopicPartition, int], *, timeout_ms: int) -> dict[TopicPartition, Deleted]:
        """Delete the messages before these offsets, and wait for the followers. Errors are in the results."""
        answers: dict[TopicPartition, Deleted] = {}
        deletions: dict[TopicPartition, _Deletion] = {}
        for topic_partition, offset in offsets.items():
            try:
                deletions[topic_partition] = self._begin(topic_partition, offset)
            except (ReplicaRefused, LogError) as error:
                answers[topic_partition] = Deleted(error_code=error.error_code)
        if deletions:
            # Before the answer: a crash must not bring deleted messages back.
            self._storage.directories.checkpoint_recovery_points()
            self._storage.take_offline()
            await self._wait_until_done(deletions, answers, timeout_ms)
        timed_out = ErrorCode.request_timed_out
        unfinished = {
            each: Deleted(low_watermark=self._low_watermark(deletion.partition), error_code=timed_out)
            for each, deletion in deletions.items()
        }
        return answers | unfinished

    def _begin(self, topic_partition: TopicPartition, offset: int) -> _Deletion:
        """Raise the log start of the leader. Raises `ReplicaRefused` and `LogError`."""
        partition = self._find(topic_partition)
        partition.require_leader()
        if not partition.log.config.is_deleted:
            raise NotDeletable(topic_partition, "the topic's cleanup.policy has no delete")
        wanted = partition.high_watermark if offset == TO_HIGH_WATERMARK else offset
        if not 0 <= wanted <= partition.high_watermark:
            raise BeyondHighWatermark(
                topic_partition, f"{wanted} is not between 0 and the high watermark {partition.high_watermark}"
            )
        with self._storage.guard(topic_partition):
            partition.log.raise_log_start(wanted)
        return _Deletion(partition=partition, offset=wanted, reigns=partition.reigns)

    async def _wait_until_done(
        self, deletions: dict[TopicPartition, _Deletion], answers: dict[TopicPartition, Deleted], timeout_ms: int
    ) -> None:
        """Move finished deletions to the answers, until all are finished or the time is over."""
        woken = asyncio.Event()
        self._waiting.add(woken)
        try:
            with ExitStack() as watched:
                for deletion in deletions.values():
                    watched.enter_context(deletion.partition.wake_on_change(woken.set))
                async with asyncio.timeout(timeout_ms / 1000):
                    while True:
                        self._take_done(deletions, answers)
                        if not deletions:
                            return
                        await woken.wait()
                        woken.clear()
        except TimeoutError:
            self._take_done(deletions, answers)
        finally:
            self._waiting.discard(woken)

    def _take_done(self, deletions: dict[TopicPartition, _Deletion], answers: dict[TopicPartition, Deleted]) -> None:
        for topic_partition, deletion in list(deletions.items()):
            try:
                low_watermark = self._low_watermark_of(deletion)
            except ReplicaRefused as error:
                answers[topic_partition] = Deleted(error_code=error.error_code)
            else:
                if low_watermark < deletion.offset:
                    continue
                answers[topic_partition] = Deleted(low_watermark=low_watermark)
            del deletions[topic_partition]

    def _low_watermark_of(self, deletion: _Deletion) -> int:
        """Return the low watermark. Raises `StorageFailed`, and `NotLeader` after another reign began."""
        partition = deletion.partition
        partition.require_leader()
        if partition.reigns != deletion.reigns:
            raise NotLeader(partition.topic_partition, "another broker led it during the deletion")
        return self._low_watermark(partition)

    def _low_watermark(self, partition: Partition) -> int:
        own = partition.log.log_start_offset
        others = (one.log_start_offset for broker, one in partition.followers.items() if self._is_alive(broker))
        return min((own, *others))
