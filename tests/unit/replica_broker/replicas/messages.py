"""Messages for tests, as a producer sends them, and the messages in the bytes of a log."""

from collections.abc import Iterable

from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from simulation.virtual_time import START_MS


def batch(*values: str, timestamp_ms: int = START_MS) -> bytes:
    """Return a batch with a message for each value."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for offset, value in enumerate(values):
        builder.append(offset, timestamp_ms, None, value.encode(), [])
    return bytes(builder.build())


def values_in(data: bytes) -> list[str]:
    """The values of all messages in batches, in order."""
    return [value for _, value in messages_in(data)]


def messages_in(data: bytes) -> Iterable[tuple[int, str]]:
    """Offset and value of all messages in batches, in order."""
    position = 0
    while position < len(data):
        length = 12 + int.from_bytes(data[position + 8 : position + 12], "big")
        for record in DefaultRecordBatch(data[position : position + length]):
            yield record.offset, record.value.decode()
        position += length
