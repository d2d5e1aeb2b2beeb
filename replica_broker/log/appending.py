"""The checks and decisions before a leader or a follower writes batches.

A leader checks the batches of producers and assigns their offsets and, if configured, their timestamps. A follower
takes the leader's batches unchanged. It checks only that they are whole and continue its log.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller_core.model.ids import LeaderEpoch
from replica_broker.log.compression import compress
from replica_broker.log.config import LogConfig, TimestampType
from replica_broker.log.errors import (
    BatchesTooLarge,
    BatchTooLarge,
    ConfigUnsupported,
    InvalidRecord,
    InvalidTimestamp,
    TransactionsUnsupported,
    UnexpectedOffset,
)
from replica_broker.log.producers.markers import EndOfTransaction, encode_marker
from replica_broker.log.producers.states import AppendedBatch, ProducerStates
from replica_broker.log.record_batches import (
    HEADER_BYTES,
    MAGIC,
    MAGIC_AT,
    NO_TIMESTAMP,
    Compression,
    RecordBatch,
    drop_partial_batch,
    place_batches,
    read_batches,
    read_extent,
    read_header,
    replace_records,
    require_magic_2,
    set_max_timestamp,
)
from replica_broker.log.records import read_latest_timestamp, read_record_times, read_records, require_keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended:
    """The position of appended batches in the log. For no batches, the last offset is one less than the first."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int = NO_TIMESTAMP
    """-1 if records keep the timestamps of their producers."""
    is_duplicate: bool = False
    """True if the batch was already in the log and was not appended again."""

    @classmethod
    def make_duplicate(cls, batch: AppendedBatch) -> "Appended":
        """Return the position of a batch that a producer sent again."""
        return cls(
            first_offset=batch.first_offset,
            last_offset=batch.last_offset,
            log_append_time_ms=batch.max_timestamp_ms if batch.has_log_append_time else NO_TIMESTAMP,
            is_duplicate=True,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Batches that are ready to be written. The position of each counts from the start of `data`."""

    data: bytes
    batches: tuple[RecordBatch, ...]
    log_append_time_ms: int = NO_TIMESTAMP


def require_one_batch(data: bytes) -> None:
    """Require that the bytes are one whole batch of format 2, all that a producer may send in a request.

    The content of the batch is not checked. Raises `InvalidRecord`, as Kafka does, and `CorruptBatch` if the format or
    size is invalid.
    """
    if len(data) < HEADER_BYTES or data[MAGIC_AT] < MAGIC:
        raise InvalidRecord(f"expected one batch of format {MAGIC}, found {len(data)} bytes of something else")
    require_magic_2(data, 0)
    size_bytes = read_extent(data, 0).size_bytes
    if size_bytes > len(data):
        raise InvalidRecord(f"a batch's header says {size_bytes} bytes, but {len(data)} bytes were sent")
    if len(drop_partial_batch(data)) > size_bytes:
        raise InvalidRecord("expected one batch for each partition, found several")


def prepare_leader_append(
    data: bytes,
    config: LogConfig,
    producers: ProducerStates,
    *,
    first_offset: int,
    leader_epoch: LeaderEpoch,
    now_ms: int,
) -> Append | AppendedBatch:
    """Prepare what a leader writes for a producer, or return the existing batch if the producer sent it again.

    Raises `LogError`.
    """
    if config.unsupported is not None:
        raise ConfigUnsupported(config.unsupported)
    batches = tuple(read_batches(data))
    _require_acceptable(batches, config)
    latest_ms = [read_latest_timestamp(batch, data) for batch in batches]
    for batch in batches:
        _require_acceptable_records(batch, data, config, now_ms)
    # Looked up before the sequence check, because a retry of an appended batch has an old sequence and is no error.
    for batch in batches:
        if batch.has_producer:
            if (known := producers.find_duplicate(batch)) is not None:
                return known
            producers.require_next(batch)
    if any(config.compression not in (None, batch.compression) for batch in batches):
        data = b"".join(_compress_batch(batch, data, config.compression) for batch in batches)
        batches = tuple(read_batches(data))
        # Checked again: another codec may have made a batch larger than the limit.
        _require_acceptable_sizes(batches, config)
    has_log_append_time = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    log_append_time_ms = now_ms if has_log_append_time else NO_TIMESTAMP
    written = bytearray(place_batches(data, first_offset, leader_epoch, now_ms if has_log_append_time else None))
    for batch, latest in zip(batches, latest_ms, strict=True):
        if not has_log_append_time and latest != batch.max_timestamp_ms:
            set_max_timestamp(written, batch, latest)
    headers = tuple(read_header(written, batch.position) for batch in batches)
    return Append(data=bytes(written), batches=headers, log_append_time_ms=log_append_time_ms)


def prepare_marker_append(
    end: EndOfTransaction, producers: ProducerStates, *, first_offset: int, leader_epoch: LeaderEpoch, now_ms: int
) -> Append:
    """Prepare the marker that ends a transaction.

    Raises `InvalidProducerEpoch` if its producer has a later epoch by now.
    """
    producers.require_epoch(end.producer_id, end.producer_epoch)
    data = place_batches(encode_marker(end, now_ms), first_offset, leader_epoch, None)
    return Append(data=data, batches=tuple(read_batches(data)))


def prepare_follower_append(data: bytes, log_start_offset: int, log_end_offset: int) -> Append:
    """Prepare what a follower writes from its leader.

    The first batch may begin before an empty log, if the log starts within that batch. Raises `CorruptBatch`,
    `UnsupportedFormat`, `UnexpectedOffset`.
    """
    batches = tuple(read_batches(data))
    expected = log_end_offset
    if batches and log_start_offset == log_end_offset <= batches[0].last_offset:
        expected = min(expected, batches[0].base_offset)
    for batch in batches:
        if batch.base_offset < expected:
            raise UnexpectedOffset(f"a batch begins at offset {batch.base_offset}, before the next offset {expected}")
        expected = batch.next_offset
    return Append(data=data, batches=batches)


def _compress_batch(batch: RecordBatch, data: bytes, compression: Compression | None) -> bytes:
    """Return the batch with its records compressed as the topic requires. Raises `CorruptBatch`."""
    if compression is None or compression is batch.compression:
        return data[batch.position : batch.end]
    header = data[batch.position : batch.position + HEADER_BYTES]
    return replace_records(header, compress(compression, bytes(read_records(batch, data))), compression)


def _require_acceptable_records(batch: RecordBatch, data: bytes, config: LogConfig, now_ms: int) -> None:
    """Check the keys of compacted topics and the distance of timestamps from the clock, like Kafka's LogValidator.

    Raises `InvalidRecord`, `InvalidTimestamp` and `CorruptBatch`.
    """
    before_ms, after_ms = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    has_limits = config.message_timestamp_type is TimestampType.CREATE_TIME and (before_ms, after_ms) != (None, None)
    if not config.is_compacted and not has_limits:
        return
    body = read_records(batch, data)
    if config.is_compacted:
        require_keys(batch, body)
    if has_limits:
        for record in read_record_times(batch, body):
            ahead_ms = record.timestamp_ms - now_ms
            is_early = before_ms is not None and ahead_ms < -before_ms
            is_late = after_ms is not None and ahead_ms > after_ms
            if record.timestamp_ms != NO_TIMESTAMP and (is_early or is_late):
                name, limit_ms = ("before", before_ms) if is_early else ("after", after_ms)
                raise InvalidTimestamp(
                    f"a record's time is {abs(ahead_ms)} ms {name} the broker's, but the topic's"
                    f" message.timestamp.{name}.max.ms is {limit_ms}"
                )


def _require_acceptable(batches: Sequence[RecordBatch], config: LogConfig) -> None:
    if len(batches) > 1 and any(batch.has_producer for batch in batches):
        raise InvalidRecord(f"an idempotent producer sends one batch at a time, found {len(batches)}")
    _require_acceptable_sizes(batches, config)
    for batch in batches:
        if batch.is_control:
            raise InvalidRecord("only brokers write control records")
        if batch.is_transactional:
            raise TransactionsUnsupported(
                "this broker does not support transactions: use a topic whose leaders are stock brokers"
            )
        if batch.has_log_append_time:
            raise InvalidTimestamp("a producer's batch claims to have LogAppendTime timestamps")


def _require_acceptable_sizes(batches: Sequence[RecordBatch], config: LogConfig) -> None:
    for batch in batches:
        if batch.size_bytes > config.max_message_bytes:
            raise BatchTooLarge(
                f"a batch has {batch.size_bytes} bytes, but the topic's max.message.bytes is {config.max_message_bytes}"
            )
    if (total_bytes := sum(batch.size_bytes for batch in batches)) > config.segment_bytes:
        raise BatchesTooLarge(
            f"batches have {total_bytes} bytes, but the topic's segment.bytes is {config.segment_bytes}"
        )
