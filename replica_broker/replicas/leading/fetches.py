"""A leader's responses to fetches of followers and consumers (seed 004, G).

This is the seed's `on_ReplicaFetchRequest`. The offset of a follower's fetch shows what it has: the ISR may change, the
high watermark may move, and producers may be answered. A fetch with another epoch, from an unassigned replica, or of a
diverging log does not count (KIP-320, KIP-595).

Consumers see committed messages only. Between the high watermark and the log's end they get nothing *yet*, and no
error, because a new leader's high watermark may be behind the previous leader's. Followers also answer consumers that
name their last epoch (KIP-392), which a controller uses to compare logs before an unclean election. A fetch is counted
once, at its arrival, and waits until it has enough data or its answer changes. While it waits, only the sizes of its
records are in memory. The records are read again at the end.
"""

import asyncio
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import NO_EPOCH, TopicPartition
from controller_core.wire.messages import ErrorCode
from replica_broker.log.errors import LogError, OffsetOutOfRange
from replica_broker.replicas.errors import InconsistentTopicId, NotLeader, ReplicaRefused, UnknownLeaderEpoch
from replica_broker.replicas.leading.committing import Committing
from replica_broker.replicas.leading.isr_changes import IsrChanges
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.replica import Follower
from replica_broker.replicas.requests import Asked, EpochEnd, Fetch, Fetched
from replica_broker.replicas.storage import Storage

Find = Callable[[TopicPartition], Partition]
"""Returns a hosted partition. Raises `ReplicaRefused`."""


class Fetches:
    """Answers fetches from the partitions that this broker leads."""

    def __init__(
        self, find: Find, storage: Storage, committing: Committing, isr_changes: IsrChanges, clock: Clock
    ) -> None:
        self._find = find
        self._storage = storage
        self._committing = committing
        self._isr_changes = isr_changes
        self._clock = clock

    async def fetch(self, asked: Fetch) -> dict[TopicPartition, Fetched]:
        """Return the answer of each partition. Errors are in the answers."""
        self._count(asked)
        answers = self._read_all(asked)
        if asked.max_wait_ms <= 0 or _is_enough(asked, answers):
            return answers
        woken = asyncio.Event()
        changed: set[TopicPartition] = set()
        dropped: dict[TopicPartition, int] = {}

        def wake(topic_partition: TopicPartition) -> None:
            changed.add(topic_partition)
            woken.set()

        with ExitStack() as watched:
            for topic_partition in asked.partitions:
                watched.enter_context(self._find(topic_partition).wake_on_change(partial(wake, topic_partition)))
            with suppress(TimeoutError):
                async with asyncio.timeout(asked.max_wait_ms / 1000):
                    while not _is_enough(asked, answers, sum(dropped.values())):
                        _drop_records(answers, dropped)
                        await woken.wait()
                        woken.clear()
                        self._read_again(asked, answers, dropped, changed)
            changed.update(dropped)
            self._read_again(asked, answers, dropped, changed)
        return answers

    def _count(self, asked: Fetch) -> None:
        """Record the followers' offsets: `on_ReplicaFetchRequest`, up to the read."""
        if not asked.is_from_follower:
            return
        for topic_partition, one in asked.partitions.items():
            try:
                partition = self._find(topic_partition)
                follower = self._check(partition, one, asked)
                with self._storage.guard(topic_partition):
                    counts = _find_divergence(partition, one) is None and _is_in_range(partition, one.offset)
            except (ReplicaRefused, LogError):
                continue  # the answer will have the error
            if follower is not None and counts:
                has_deleted = follower.log_start_offset < one.log_start_offset
                follower.record_fetch(
                    one.offset,
                    partition.replica.end_offset,
                    self._clock.monotonic_ms(),
                    log_start_offset=one.log_start_offset,
                )
                if has_deleted:
                    partition.notify()
                self._isr_changes.maybe_change(partition, asked.replica_id)
                self._committing.advance(partition)

    def _read_again(
        self,
        asked: Fetch,
        answers: dict[TopicPartition, Fetched],
        dropped: dict[TopicPartition, int],
        changed: set[TopicPartition],
    ) -> None:
        """Read only the changed partitions: a follower of ten thousand waits for data in a few."""
        again = tuple(changed) if len(changed) == 1 else tuple(each for each in asked.partitions if each in changed)
        changed.clear()  # a read may change other partitions if a directory fails
        for each in again:
            dropped.pop(each, None)
            answers[each] = Fetched()
        taken_bytes = sum(len(answer.records) for answer in answers.values()) + sum(dropped.values())
        for each in again:
            one, left_bytes = asked.partitions[each], asked.max_bytes - taken_bytes
            answers[each] = self._answer(each, one, asked, left_bytes, has_some=taken_bytes > 0)
            taken_bytes += len(answers[each].records)

    def _read_all(self, asked: Fetch) -> dict[TopicPartition, Fetched]:
        answers = {}
        left_bytes = asked.max_bytes
        has_some = False
        for topic_partition, one in asked.partitions.items():
            answer = self._answer(topic_partition, one, asked, left_bytes, has_some=has_some)
            has_some = has_some or bool(answer.records)
            left_bytes -= len(answer.records)
            answers[topic_partition] = answer
        return answers

    def _answer(
        self, topic_partition: TopicPartition, one: Asked, asked: Fetch, left_bytes: int, *, has_some: bool
    ) -> Fetched:
        partition = None
        try:
            partition = self._find(topic_partition)
            self._check(partition, one, asked)
            with self._storage.guard(topic_partition):
                if (diverging := _find_divergence(partition, one)) is not None:
                    return _make_answer(partition, b"", diverging)
                records = _read(partition, one, left_bytes, is_follower=asked.is_from_follower)
            # Only the first batch of a response may exceed the limit; otherwise a large batch could never be fetched.
            return _make_answer(partition, b"" if has_some and len(records) > left_bytes else records, None)
        except (ReplicaRefused, LogError) as error:
            names_leader = error.error_code in (ErrorCode.not_leader_or_follower, ErrorCode.fenced_leader_epoch)
            if partition is None or not names_leader:
                return Fetched(error_code=error.error_code)
            return Fetched(error_code=error.error_code, leader=partition.leader, leader_epoch=partition.leader_epoch)

    def _check(self, partition: Partition, one: Asked, asked: Fetch) -> Follower | None:
        """Return the follower that fetches, or None for a consumer. Raises `ReplicaRefused`."""
        if None not in (one.topic_id, partition.topic_id) and one.topic_id != partition.topic_id:
            raise InconsistentTopicId(
                partition.topic_partition, f"the topic's id is {partition.topic_id}, not {one.topic_id}"
            )
        if not asked.is_from_follower and one.last_fetched_epoch != NO_EPOCH:
            partition.require_log()
            return None
        partition.require_leader(one.current_leader_epoch)
        if not asked.is_from_follower:
            return None
        follower = partition.followers.get(asked.replica_id)
        if follower is None:
            refusal = NotLeader if one.current_leader_epoch == NO_EPOCH else UnknownLeaderEpoch
            raise refusal(
                partition.topic_partition,
                f"broker {asked.replica_id} is not among its replicas {partition.assigned_replicas}",
            )
        return follower


def _make_answer(partition: Partition, records: bytes, diverging: EpochEnd | None) -> Fetched:
    return Fetched(
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.high_watermark,  # transactions are not supported
        log_start_offset=partition.log.log_start_offset,
        records=records,
        diverging_epoch=diverging,
    )


def _find_divergence(partition: Partition, one: Asked) -> EpochEnd | None:
    """Return the offset and epoch at which the fetching log diverges from the leader's, or None.

    Raises `OffsetOutOfRange` if the leader cannot tell.
    """
    if one.last_fetched_epoch == NO_EPOCH:
        return None
    end = EpochEnd(*partition.log.find_epoch_end(one.last_fetched_epoch))
    if not end.is_known or end.epoch == NO_EPOCH or one.offset < partition.log.log_start_offset:
        raise OffsetOutOfRange(f"{partition.topic_partition} does not know where epoch {one.last_fetched_epoch} ended")
    return end if end.epoch < one.last_fetched_epoch or end.end_offset < one.offset else None


def _is_in_range(partition: Partition, offset: int) -> bool:
    return partition.log.log_start_offset <= offset <= partition.replica.end_offset


def _read(partition: Partition, one: Asked, left_bytes: int, *, is_follower: bool) -> bytes:
    below = partition.replica.end_offset if is_follower else partition.high_watermark
    if _is_in_range(partition, one.offset) and one.offset >= below:
        return b""
    return partition.log.read(one.offset, max(0, min(one.max_bytes, left_bytes)), below=below)


def _drop_records(answers: dict[TopicPartition, Fetched], dropped: dict[TopicPartition, int]) -> None:
    """Replace the records in the answers by their sizes in `dropped`."""
    for each, answer in answers.items():
        if answer.records:
            dropped[each] = len(answer.records)
            answers[each] = Fetched()


def _is_enough(asked: Fetch, answers: dict[TopicPartition, Fetched], dropped_bytes: int = 0) -> bool:
    if not answers or sum(len(answer.records) for answer in answers.values()) + dropped_bytes >= asked.min_bytes:
        return True
    return any(
        answer.error_code is not ErrorCode.none or answer.diverging_epoch is not None for answer in answers.values()
    )
