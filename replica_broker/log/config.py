"""The configuration of a log as one value. The defaults are Kafka's."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from replica_broker.log.record_batches import Compression

MOST_SEGMENT_BYTES: Final = (1 << 31) - 1
"""Limit of a segment, because index entries have 4-byte positions."""


class TimestampType(Enum):
    """The origin of a record's timestamp (`message.timestamp.type`): the producer, or the broker that appends it."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Configuration of one log. None stands for Kafka's -1: no limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    is_deleted: bool = True
    """True if `cleanup.policy` has `delete`. Otherwise retention deletes no segment and DeleteRecords is refused."""
    is_compacted: bool = False
    """True if `cleanup.policy` has `compact`.

    Then each record needs a key: the cleaner of a stock broker drops records without one.
    """
    retention_ms: int | None = 7 * 24 * 3600 * 1000
    retention_bytes: int | None = None
    unsupported: str | None = None
    """The reason why producers are refused: a configuration of the topic that this broker does not support."""
    compression: Compression | None = None
    """The codec of records on the leader. None keeps the producer's."""
    max_message_bytes: int = 1_048_588
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int | None = None
    """Limit of a producer's timestamp before the broker's clock."""
    message_timestamp_after_max_ms: int | None = None
    """Limit of a producer's timestamp after the broker's clock."""
    index_interval_bytes: int = 4096
    producer_id_expiration_ms: int = 24 * 3600 * 1000
    """Time after which an idle producer is forgotten. A configuration of the broker, not of a topic."""

    def __post_init__(self) -> None:
        if not 0 < self.segment_bytes <= MOST_SEGMENT_BYTES:
            raise ValueError(f"segment.bytes must be from 1 to {MOST_SEGMENT_BYTES}, found {self.segment_bytes}")


DEFAULT_LOG_CONFIG: Final = LogConfig()
