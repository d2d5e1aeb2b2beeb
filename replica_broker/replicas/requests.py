"""What is asked of replicas and what they answer, as values: between serving, replicas and the links to leaders.

A follower's fetch and a consumer's are the same request, as in Kafka; the seed's `ReplicaFetchRequest` is one of the
first kind. Where nothing is said about an epoch, nothing is compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from controller_core.model.ids import NO_EPOCH, NO_LEADER, BrokerId, LeaderEpoch, TopicId, TopicPartition
from controller_core.wire.messages import ErrorCode

CONSUMER: Final = BrokerId(-1)
"""In the place of a replica's id: whoever asks is none."""
UNKNOWN_OFFSET: Final = -1

IsolationLevel = Literal["read uncommitted", "read committed"]


class EpochEnd(NamedTuple):
    """Where a leader epoch ends in a log: the first offset that is not of it. (-1, -1) where the log does not know."""

    epoch: LeaderEpoch
    end_offset: int

    @property
    def is_known(self) -> bool:
        return self.end_offset != UNKNOWN_OFFSET


UNKNOWN_END: Final = EpochEnd(NO_EPOCH, UNKNOWN_OFFSET)


class Asked(NamedTuple):
    """What a fetch asks of one partition."""

    offset: int
    max_bytes: int
    current_leader_epoch: LeaderEpoch = NO_EPOCH
    last_fetched_epoch: LeaderEpoch = NO_EPOCH
    log_start_offset: int = UNKNOWN_OFFSET
    topic_id: TopicId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch:
    """A fetch by a follower, or by a consumer."""

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
    """The answer for one partition: whole batches, or why there are none."""

    error_code: ErrorCode = ErrorCode.none
    high_watermark: int = UNKNOWN_OFFSET
    last_stable_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    records: bytes = field(default=b"", repr=False)
    diverging_epoch: EpochEnd | None = None
    """Where the follower's log parts from the leader's: what it has behind that, the leader has not (KIP-595)."""
    leader: BrokerId = NO_LEADER
    """With NOT_LEADER_OR_FOLLOWER and FENCED_LEADER_EPOCH: who leads, as far as this broker knows."""
    leader_epoch: LeaderEpoch = NO_EPOCH


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The answer to DeleteRecords for one partition: the smallest log start of its live replicas, or why there is none."""

    low_watermark: int = UNKNOWN_OFFSET
    error_code: ErrorCode = ErrorCode.none


class ListedOffset(NamedTuple):
    """The answer to ListOffsets for one partition; all -1 where there is no such message."""

    offset: int = UNKNOWN_OFFSET
    timestamp_ms: int = -1
    leader_epoch: LeaderEpoch = NO_EPOCH


TO_HIGH_WATERMARK: Final = -1
"""The offset of DeleteRecords that is none: all that is committed."""

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
"""The timestamps of ListOffsets that are none."""
