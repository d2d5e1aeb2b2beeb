"""A topic of the client library's own mock broker: all messages come once, and the reader knows the end."""

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition

from kontroller.history.sources.journal_http import JournalUnreadable
from kontroller.history.watching.journals import topic
from kontroller.history.watching.journals.journal import Chunk
from kontroller.history.watching.journals.topic import TopicJournal


@pytest.fixture(scope="module")
def producer() -> Iterator[Producer]:
    """Brokers live in the process of the first client that asks for them, and end with it."""
    yield (made := Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1, "log_level": 0}))
    made.flush(5)


@pytest.fixture(scope="module")
def bootstrap(producer: Producer) -> str:
    broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
    return f"{broker.host}:{broker.port}"


async def read_to_the_end(journal: TopicJournal) -> list[bytes]:
    lines: list[bytes] = []
    async with asyncio.timeout(60):
        while True:
            chunk = await journal.read()
            lines += chunk.lines
            if chunk.is_at_end:
                return lines


def write(producer: Producer, topic: str, *values: bytes, partition: int = 0) -> None:
    for value in values:
        producer.produce(topic, value, key="c1", partition=partition)
    assert producer.flush(10) == 0


async def test_messages_come_from_the_first_on_each_once_and_then_as_they_are_written(
    producer: Producer, bootstrap: str
) -> None:
    write(producer, "journal", b"1", b"2")
    journal = TopicJournal("journal", bootstrap)
    assert await read_to_the_end(journal) == [b"1", b"2"]
    assert await read_to_the_end(journal) == []
    write(producer, "journal", b"3")
    lines: list[bytes] = []
    async with asyncio.timeout(60):
        while not lines:
            chunk = await journal.read()
            lines += chunk.lines
    # The library itself reports the end only after a fetch without messages, which a busy topic does not have.
    assert chunk == Chunk([b"3"], True)
    await journal.close()
    assert await read_to_the_end(journal) == [b"1", b"2", b"3"]
    await journal.close()


async def test_brokers_that_are_away_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kontroller.history.watching.journals.topic._CONNECT_S", 0.3)
    journal = TopicJournal("journal", "127.0.0.1:1")
    with pytest.raises(JournalUnreadable, match=r"kafka://127\.0\.0\.1:1/journal cannot be read"):
        await journal.read()


class Message:
    """A message, or an error in place of one."""

    def __init__(self, value: bytes = b"", error: int | None = None) -> None:
        self._value, self._error = value, error

    def error(self) -> KafkaError | None:
        return None if self._error is None else KafkaError(self._error)

    def partition(self) -> int:
        return 0

    def value(self) -> bytes:
        return self._value


class Brokers:
    """A consumer of the partition 0. `batches` come next, and `high` is its high watermark."""

    def __init__(self, *batches: list[Message], high: int) -> None:
        self._batches, self._high, self._offset = list(batches), high, 0

    def consume(self, _most: int, _wait_s: float) -> list[Message]:
        batch = self._batches.pop(0) if self._batches else []
        self._offset += sum(message.error() is None for message in batch)
        return batch

    def position(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        return [TopicPartition(it.topic, it.partition, self._offset) for it in partitions]

    def get_watermark_offsets(self, _partition: TopicPartition, *, cached: bool) -> tuple[int, int]:
        assert cached
        return 0, self._high


async def test_messages_behind_an_error_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers([Message(error=KafkaError._TRANSPORT), Message(b"1")], high=1)
    monkeypatch.setattr(TopicJournal, "_connect", lambda _: brokers)
    assert await TopicJournal("journal", "a:9092").read() == Chunk([b"1"], True)


async def test_brokers_that_die_before_the_end_make_the_topic_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = Brokers([Message(b"1")], high=2)
    monkeypatch.setattr(TopicJournal, "_connect", lambda _: brokers)
    journal = TopicJournal("journal", "a:9092")
    assert await journal.read() == Chunk([b"1"], False)
    assert await journal.read() == Chunk([], False)
    monkeypatch.setattr(topic, "_QUIET_S", -1.0)
    with pytest.raises(JournalUnreadable, match="partition 0 has not answered"):
        await journal.read()
