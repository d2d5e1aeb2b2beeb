"""A topic of the client library's own mock broker: all messages come once, and the reader knows the end."""

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from kontroller.history.sources.journal_http import JournalUnreadable
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
            lines += (await journal.read()).lines
    assert lines == [b"3"]
    await journal.close()
    assert await read_to_the_end(journal) == [b"1", b"2", b"3"]
    await journal.close()


async def test_brokers_that_are_away_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kontroller.history.watching.journals.topic._CONNECT_S", 0.3)
    journal = TopicJournal("journal", "127.0.0.1:1")
    with pytest.raises(JournalUnreadable, match=r"kafka://127\.0\.0\.1:1/journal cannot be read"):
        await journal.read()
