"""The errors of a log, each with Kafka's error code for clients.

A failure of the disk is none of them: it is a `replica_broker.disk.disk.DiskError` and takes the whole log directory
offline.
"""

from typing import ClassVar

from kio.schema.errors import ErrorCode


class LogError(Exception):
    """A log cannot do an operation. Nothing was changed. Not retriable, unless the subclass says so."""

    error_code: ClassVar[ErrorCode] = ErrorCode.unknown_server_error


class CorruptBatch(LogError):
    """Bytes that are not a record batch: impossible sizes, or a wrong CRC.

    Retriable: they may have been damaged in transit.
    """

    error_code = ErrorCode.corrupt_message


class UnsupportedFormat(LogError):
    """Messages of magic 0 or 1, which only clients older than Kafka 0.11 send."""

    error_code = ErrorCode.unsupported_for_message_format


class InvalidRecord(LogError):
    """A whole batch that no leader accepts: its records contradict its header, or only brokers may write them."""

    error_code = ErrorCode.invalid_record


class InvalidTimestamp(LogError):
    """A batch that claims LogAppendTime before a broker set it, or whose timestamps exceed the topic's limits."""

    error_code = ErrorCode.invalid_timestamp


class BatchTooLarge(LogError):
    """A batch larger than max.message.bytes."""

    error_code = ErrorCode.message_too_large


class BatchesTooLarge(LogError):
    """Batches that are larger than a segment."""

    error_code = ErrorCode.record_list_too_large


class ConfigUnsupported(LogError):
    """A topic with a configuration that this broker does not support."""

    error_code = ErrorCode.invalid_config


class TransactionsUnsupported(LogError):
    """A transactional batch. This broker does not support transactions."""

    error_code = ErrorCode.unsupported_for_message_format


class OffsetOutOfRange(LogError):
    """An offset that is not between the log's start and its end."""

    error_code = ErrorCode.offset_out_of_range


class UnexpectedOffset(LogError):
    """Batches for a follower that do not continue its log. Retriable after a fetch from the log's end."""

    error_code = ErrorCode.offset_out_of_range


class OutOfOrderSequence(LogError):
    """An idempotent producer's batch that does not follow the previous one."""

    error_code = ErrorCode.out_of_order_sequence_number


class InvalidProducerEpoch(LogError):
    """A fenced producer: a later epoch of its id exists."""

    error_code = ErrorCode.invalid_producer_epoch


class InconsistentTopicId(LogError):
    """The log belongs to an earlier topic of the same name. It must be deleted first."""

    error_code = ErrorCode.inconsistent_topic_id


class LogOffline(LogError):
    """The log is closed, or in a failed directory. Not retriable on this broker."""

    error_code = ErrorCode.kafka_storage_error


class MalformedFile(LogError):
    """A checkpoint or another small file with invalid content."""

    error_code = ErrorCode.kafka_storage_error


class DirectoryRefused(LogError):
    """A log directory that this broker must not use: it belongs to another broker or cluster.

    Fatal at the start; it needs a person.
    """

    error_code = ErrorCode.kafka_storage_error
