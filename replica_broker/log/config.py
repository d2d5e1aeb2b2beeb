"""What a topic's configuration says about its logs, as one value; the defaults are Kafka's."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from replica_broker.log.record_batches import Compression

MOST_SEGMENT_BYTES: Final = (1 << 31) - 1
"""Positions in an index have four bytes."""


class TimestampType(Enum):
    """Who says when a record was: the producer, or the broker that appends it. As in `message.timestamp.type`."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Configuration of one log. None stands for Kafka's -1: no limit."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3600 * 1000
    is_deleted: bool = True
    """Whether `cleanup.policy` has `delete`: else no segment is too old or too much, and nobody may delete messages."""
    is_compacted: bool = False
    """Whether `cleanup.policy` has `compact`: then each record needs a key, as the cleaner of a stock broker drops those
    without one."""
    retention_ms: int | None = 7 * 24 * 3600 * 1000
    retention_bytes: int | None = None
    unsupported: str | None = None
    """Why no producer may write here: the topic asks for what this broker does not do."""
    compression: Compression | None = None
    """How the leader compresses records; None: they stay as producers sent them."""
    max_message_bytes: int = 1_048_588
    message_timestamp_type: TimestampType = TimestampType.CREATE_TIME
    message_timestamp_before_max_ms: int | None = None
    """How much earlier than the broker's clock a producer's time may be."""
    message_timestamp_after_max_ms: int | None = None
    """How much later than the broker's clock a producer's time may be."""
    index_interval_bytes: int = 4096
    producer_id_expiration_ms: int = 24 * 3600 * 1000
    """A producer that wrote nothing for so long is forgotten; of the broker, not of a topic."""

    def __post_init__(self) -> None:
        if not 0 < self.segment_bytes <= MOST_SEGMENT_BYTES:
            raise ValueError(f"segment.bytes must be from 1 to {MOST_SEGMENT_BYTES}, found {self.segment_bytes}")


DEFAULT_LOG_CONFIG: Final = LogConfig()
