"""What a log refuses, in words; each kind of error knows which of Kafka's error codes says it to a client.

None of these is a failure of the disk (`replica_broker.disk.disk.DiskError`), which takes a whole log directory offline.
"""

from typing import ClassVar

from kio.schema.errors import ErrorCode


class LogError(Exception):
    """A log cannot do what was asked. Nothing was changed. Not retriable as it is, unless the subclass says so."""

    error_code: ClassVar[ErrorCode] = ErrorCode.unknown_server_error


class CorruptBatch(LogError):
    """Bytes that are no record batch: sizes that make no sense, or another CRC than the one they say. Retriable: they may
    have been hurt on their way."""

    error_code = ErrorCode.corrupt_message


class UnsupportedFormat(LogError):
    """Messages of magic 0 or 1, which only clients older than Kafka 0.11 make."""

    error_code = ErrorCode.unsupported_for_message_format


class InvalidRecord(LogError):
    """A whole batch whose content no leader takes: its records are not those that it says, or are not for clients."""

    error_code = ErrorCode.invalid_record


class InvalidTimestamp(LogError):
    """A batch that says the broker gave it its timestamps, before one did, or whose times the topic does not allow."""

    error_code = ErrorCode.invalid_timestamp


class BatchTooLarge(LogError):
    """A batch larger than max.message.bytes."""

    error_code = ErrorCode.message_too_large


class BatchesTooLarge(LogError):
    """Batches that are larger than a segment."""

    error_code = ErrorCode.record_list_too_large


class ConfigUnsupported(LogError):
    """A topic whose configuration asks for what this broker does not do."""

    error_code = ErrorCode.invalid_config


class TransactionsUnsupported(LogError):
    """A batch of a transaction, whose end this broker could not mark."""

    error_code = ErrorCode.unsupported_for_message_format


class OffsetOutOfRange(LogError):
    """An offset that is not between the log's start and its end."""

    error_code = ErrorCode.offset_out_of_range


class UnexpectedOffset(LogError):
    """Batches for a follower that do not continue its log. Retriable after fetching from the log's end."""

    error_code = ErrorCode.offset_out_of_range


class OutOfOrderSequence(LogError):
    """An idempotent producer's batch that does not follow the one before."""

    error_code = ErrorCode.out_of_order_sequence_number


class InvalidProducerEpoch(LogError):
    """A producer that was fenced: there is a later one of its id."""

    error_code = ErrorCode.invalid_producer_epoch


class InconsistentTopicId(LogError):
    """The log belongs to an earlier topic of the same name. Whoever commands it has to delete it first."""

    error_code = ErrorCode.inconsistent_topic_id


class LogOffline(LogError):
    """The log is in a directory that failed, or was closed. Not retriable here."""

    error_code = ErrorCode.kafka_storage_error


class MalformedFile(LogError):
    """A checkpoint, or another small file, that makes no sense."""

    error_code = ErrorCode.kafka_storage_error


class DirectoryRefused(LogError):
    """A log directory that this broker must not use: another broker's, another cluster's. Fatal at start: a person has to
    look at it."""

    error_code = ErrorCode.kafka_storage_error
