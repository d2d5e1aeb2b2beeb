"""The guarantees that the writer needs from every sink: files, and a topic of librdkafka's own broker in memory."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from controller_core.journal.batches import EachJournal, NoJournal
from controller_core.journal.segments import Block, SegmentFiles, Sink, Unwritable, segments
from controller_core.journal.topic import PARTITION, TopicSink
from controller_core.journal.writer import JournalWriter
from devcluster.running.ports import release_port, reserve_port
from devcluster.running.processes import wait_until
from tests.unit.journal.test_writer import LARGE, commit, request, snapshot

TOPIC = "controller-journal"


class Subject(ABC):
    """A kind of sink, a failing sink, and the lines that arrived in the first."""

    sink: Sink
    failing: Sink

    @abstractmethod
    def lines(self, count: int) -> list[bytes]:
        """Return that many lines in their order, or all of them if there are fewer."""


class Files(Subject):
    def __init__(self, folder: Path) -> None:
        self._folder = folder / "journal"
        self.sink = SegmentFiles(self._folder, segment_bytes=LARGE)
        (folder / "file").touch()
        self.failing = SegmentFiles(folder / "file" / "journal", segment_bytes=LARGE)

    def lines(self, count: int) -> list[bytes]:
        return b"".join(path.read_bytes() for path in segments(self._folder)).splitlines()[:count]


class Topic(Subject):
    def __init__(self) -> None:
        self._broker = Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._broker.list_topics(timeout=30).brokers.values()
        self.bootstrap = f"{broker.host}:{broker.port}"
        self.sink = TopicSink(TOPIC, self.bootstrap)
        port = reserve_port()
        release_port(port)
        self.failing = TopicSink(TOPIC, f"127.0.0.1:{port}", delivery_timeout_ms=500)

    def lines(self, count: int) -> list[bytes]:
        return [value for _, value in self.messages(count)]

    def messages(self, count: int) -> list[tuple[bytes | None, bytes]]:
        """Keys and values."""
        with closing(Consumer({"bootstrap.servers": self.bootstrap, "group.id": "test", "log_level": 0})) as consumer:
            consumer.assign([TopicPartition(TOPIC, PARTITION, 0)])
            found = consumer.consume(count, timeout=30)
        assert not any(message.error() for message in found)
        return [(message.key(), message.value() or b"") for message in found]


@pytest.fixture(params=["files", "topic"])
def subject(request: pytest.FixtureRequest, tmp_path: Path) -> Subject:
    return Files(tmp_path) if request.param == "files" else Topic()


def block(*numbers: int, epoch: int = 1) -> Block:
    data = b"".join(b'{"seq":%d}\n' % number for number in numbers)
    return Block(epoch=epoch, first_seq=numbers[0], data=data, cluster_id="cluster")


def test_lines_arrive_in_their_order_across_blocks_and_epochs(subject: Subject) -> None:
    subject.sink.write(block(*range(500)))
    subject.sink.write(block(500, 501))
    subject.sink.write(block(0, epoch=2))
    subject.sink.close()
    assert subject.lines(503) == [b'{"seq":%d}' % number for number in (*range(502), 0)]


def test_what_cannot_be_written_is_an_os_error_every_time(subject: Subject) -> None:
    for _ in range(2):
        with pytest.raises(OSError, match=r"file|topic"):
            subject.failing.write(block(0))
    subject.failing.close()


def test_a_closed_sink_can_be_written_again(subject: Subject) -> None:
    subject.sink.write(block(0))
    subject.sink.close()
    subject.sink.write(block(1))
    subject.sink.close()
    assert subject.lines(2) == [b'{"seq":0}', b'{"seq":1}']


def test_the_writer_is_held_up_by_no_sink_that_fails(subject: Subject) -> None:
    writer = JournalWriter(subject.failing, capacity=4, retry_s=0.01)
    for number in range(10):
        writer.append(commit(number))
    wait_until(lambda: writer.counts.is_failing, "the failure is known")
    assert writer.counts.dropped > 0
    assert not writer.wants_snapshot
    assert writer.close(30), "it ends nevertheless"


def test_a_message_has_the_cluster_as_its_key() -> None:
    topic = Topic()
    writer = JournalWriter(topic.sink)
    writer.append(snapshot(1))
    assert writer.close(30)
    assert {key for key, _ in topic.messages(3)} == {b"test"}


@pytest.mark.parametrize("lines", [[9 << 20], [6 << 20] * 3], ids=["line", "block"])
def test_what_is_larger_than_the_buffer_of_the_topic_is_unwritable_and_the_next_block_is_written(
    lines: list[int],
) -> None:
    topic = Topic()
    data = b"".join(b"x" * length + b"\n" for length in lines)
    for _ in range(2):
        with pytest.raises(Unwritable, match=TOPIC):
            topic.sink.write(Block(epoch=1, first_seq=0, data=data, cluster_id="cluster"))
    topic.sink.write(block(1))


class RefusingProducer:
    """A producer whose broker refuses what it gets."""

    code = KafkaError.MSG_SIZE_TOO_LARGE

    def __init__(self, _: Mapping[str, object]) -> None:
        self._on_delivery: list[Callable[[KafkaError, None], None]] = []

    def produce(self, *_: object, on_delivery: Callable[[KafkaError, None], None], **__: object) -> None:
        self._on_delivery.append(on_delivery)

    def flush(self, _: float) -> int:
        for tell in self._on_delivery:
            tell(KafkaError(self.code), None)
        return 0

    def purge(self) -> None:
        pass


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, Unwritable),
        (KafkaError.RECORD_LIST_TOO_LARGE, Unwritable),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, OSError),
    ],
)
def test_only_what_a_broker_finds_too_large_is_unwritable(
    monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
) -> None:
    monkeypatch.setattr(RefusingProducer, "code", code)
    monkeypatch.setattr("controller_core.journal.topic.Producer", RefusingProducer)
    with pytest.raises(error, match=TOPIC):
        TopicSink(TOPIC, "none").write(block(0))


def test_the_topic_takes_a_line_of_more_than_a_megabyte_and_goes_on_after_one_that_is_too_large() -> None:
    topic = Topic()
    writer = JournalWriter(topic.sink)
    for batch in (request(1_100_000), request(10_000_000), commit(1)):
        writer.append(batch)
    assert writer.close(30)
    large, gap, short = map(json.loads, topic.lines(3))
    assert [each["seq"] for each in (large, gap, short)] == [0, 1, 2]
    assert (len(large["request"]["api"]), gap["kind"], gap["dropped"]) == (1_100_000, "gap", 1)


def test_journals_side_by_side_miss_nothing_of_each_other(tmp_path: Path) -> None:
    files = Files(tmp_path)
    stuck = JournalWriter(files.failing, capacity=1, retry_s=0.01)
    written = JournalWriter(files.sink)
    both = EachJournal([stuck, written])
    assert both.is_kept
    for number in range(5):
        both.append(commit(number))
    wait_until(lambda: written.is_idle, "one of them has all")
    assert len(files.lines(9)) == 5
    assert (written.counts.dropped, stuck.counts.written) == (0, 0)
    assert written.close(30)
    assert stuck.close(30)


def test_where_no_journal_is_named_none_is_kept() -> None:
    assert not EachJournal([]).is_kept
    assert not EachJournal([NoJournal()]).is_kept
