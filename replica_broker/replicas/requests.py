"""Requests to replicas and their results, as values shared by serving, replicas and leader links.

As in Kafka, followers and consumers send the same fetch; the seed's `ReplicaFetchRequest` is a follower's. An epoch
that is not given is not compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from controller_core.model.ids import NO_EPOCH, NO_LEADER, BrokerId, LeaderEpoch, TopicId, TopicPartition
from controller_core.wire.messages import ErrorCode

CONSUMER: Final = BrokerId(-1)
"""Replaces the replica id in a consumer's request."""
UNKNOWN_OFFSET: Final = -1

IsolationLevel = Literal["read uncommitted", "read committed"]


class EpochEnd(NamedTuple):
    """The end of a leader epoch in a log: the first offset after it. (-1, -1) if the log does not know."""

    epoch: LeaderEpoch
    end_offset: int

    @property
    def is_known(self) -> bool:
        return self.end_offset != UNKNOWN_OFFSET


UNKNOWN_END: Final = EpochEnd(NO_EPOCH, UNKNOWN_OFFSET)


class Asked(NamedTuple):
    """A fetch's request for one partition."""

    offset: int
    max_bytes: int
    current_leader_epoch: LeaderEpoch = NO_EPOCH
    last_fetched_epoch: LeaderEpoch = NO_EPOCH
    log_start_offset: int = UNKNOWN_OFFSET
    topic_id: TopicId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """A fetch by a follower or a consumer."""

    partitions: Mapping[TopicPartition, Asked]
    replica_id: BrokerId = CONSUMER
    max_wait_ms: int = 0
    min_bytes: int = 0
    max_bytes: int = 2**31 - 1
    isolation_level: IsolationLevel = "read uncommitted"

    @property
    def is_from_follower(self) -> bool:
        return self.replica_id >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The answer for one partition: whole batches, or an error."""

    error_code: ErrorCode = ErrorCode.none
    high_watermark: int = UNKNOWN_OFFSET
    last_stable_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    records: bytes = field(default=b"", repr=False)
    diverging_epoch: EpochEnd | None = None
    """The point after which the follower's log diverges from the leader's (KIP-595)."""
    leader: BrokerId = NO_LEADER
    """The known leader, for NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH."""
    leader_epoch: LeaderEpoch = NO_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The result of DeleteRecords for one partition: the low watermark of its live replicas, or an error."""

    low_watermark: int = UNKNOWN_OFFSET
    error_code: ErrorCode = ErrorCode.none


class ListedOffset(NamedTuple):
    """The result of ListOffsets for one partition; all -1 if there is no such message."""

    offset: int = UNKNOWN_OFFSET
    timestamp_ms: int = -1
    leader_epoch: LeaderEpoch = NO_EPOCH


TO_HIGH_WATERMARK: Final = -1
"""The special offset of DeleteRecords: delete all committed messages."""

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
"""The special timestamps of ListOffsets."""
