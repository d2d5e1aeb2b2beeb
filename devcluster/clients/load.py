"""A producer that never stops, and the proof that the cluster lost no acknowledged value.

`AckedProducer` writes numbered values with acks=all while brokers and controllers come and go, and records the
acknowledgements. `read_back` reads the topic from beginning to end; `find_lost` compares the two.
"""

import threading
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import structlog
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition

from devcluster.clients.identity import NOBODY, Identity

log = structlog.get_logger()

_PARTITION_EOF = KafkaError._PARTITION_EOF
_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_STUCK_S = 30.0
"""Longer than our clusters need to serve again after a session has expired."""
_AT_ONCE_S = 10.0
"""The time in which a new client gets through to a healthy cluster, even on a busy machine."""
_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """A value that every in-sync replica had when the cluster acknowledged it."""

    partition: int
    offset: int
    value: str


@dataclass(slots=True, kw_only=True)
class LoadReport:
    """The record of a producer: sent values, acknowledged values, and every error, in order.

    `longest_pause_s` is the longest time without an acknowledgement, from start to stop. `clients` counts the clients
    used: a new one replaces a client that failed for good or was stuck. `stuck` has the clients that were stuck
    although the cluster let the next one through at once; otherwise it counts as an error.
    """

    sent: int = 0
    acknowledged: list[Acknowledged] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    longest_pause_s: float = 0.0
    clients: int = 0


class ReadBackError(Exception):
    """The topic could not be read to its end; the message has the remaining partitions, and the cause if it is known."""


class AckedProducer:
    """Produces to every partition of a topic from a thread of its own until `stop`.

    It is idempotent with acks=all. A failed delivery is recorded in the report, and the next value is sent all the
    same. librdkafka's idempotent client may fail for good, or wait forever for an answer from a broker that was
    stopped. Then a new client continues and resends all unacknowledged values, like an application under supervision.
    If no client gets through, nothing is acknowledged.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        *,
        rate_per_s: float = 200.0,
        delivery_timeout_ms: int = 60_000,
        identity: Identity = NOBODY,
        connect: Callable[[dict[str, Any]], Producer] = Producer,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic = topic
        self._client = connect
        self._read_clock = clock
        self._interval_s = 1 / rate_per_s
        self._delivery_timeout_s = delivery_timeout_ms / 1000
        self._settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap_servers,
            "enable.idempotence": True,
            # With more, librdkafka counts a refused first batch as delivered if the broker takes the second one, and a
            # broker takes any first sequence number of a new producer.
            "max.in.flight.requests.per.connection": 1,
            "message.timeout.ms": delivery_timeout_ms,
            "partitioner": "random",
            "sticky.partitioning.linger.ms": 0,
            "reconnect.backoff.max.ms": 500,
            "topic.metadata.refresh.interval.ms": 2_000,
            "log_level": 2,
            **identity.librdkafka,
        }
        self._report = LoadReport()
        self._unacknowledged: dict[str, None] = {}
        self._is_replaced = False
        """True if the previous client was stuck, and this one has no acknowledgement yet."""
        self._last_acknowledged_s = self._connected_s = self._read_clock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name=f"producer-{topic}")

    @property
    def acknowledged_count(self) -> int:
        """The number of acknowledged values."""
        return len(self._report.acknowledged)

    def start(self) -> None:
        self._last_acknowledged_s = self._read_clock()
        self._thread.start()

    def stop(self) -> LoadReport:
        """Stop sending, wait for deliveries in flight (within the delivery timeout) and return the report."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._thread.join()
            self._record_pause()
        return self._report

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        producer = self._connect()
        while not self._stopping.is_set():
            try:
                self._send(producer, str(self._report.sent))
                self._report.sent += 1
                producer.poll(0)
                # A poll ends with the first acknowledgement: only a pause of its own keeps the load to its rate.
                self._stopping.wait(self._interval_s)
            except BufferError:
                producer.poll(0.1)
            except KafkaException as error:
                self._report.errors.append(str(error))
                producer = self._replace_client(producer, str(error))
            producer = self._unstuck(producer)
        self._finish(producer)

    def _finish(self, producer: Producer) -> None:
        deadline_s = self._read_clock() + self._delivery_timeout_s
        while producer.flush(1) and self._read_clock() < deadline_s:
            producer = self._unstuck(producer)
        self._give_up(producer)
        self._report.errors += [f"{value} was not acknowledged" for value in self._unacknowledged]

    def _connect(self) -> Producer:
        self._connected_s = self._read_clock()
        self._report.clients += 1
        return self._client(self._settings)

    def _send(self, producer: Producer, value: str) -> None:
        producer.produce(self._topic, value=value, on_delivery=self._on_delivery)
        self._unacknowledged[value] = None

    def _unstuck(self, producer: Producer) -> Producer:
        if self._read_clock() - max(self._connected_s, self._last_acknowledged_s) <= _STUCK_S:
            return producer
        if self._is_replaced:
            self._report.errors.append(self._report.stuck.pop())
        self._report.stuck.append(f"nothing was acknowledged for {_STUCK_S:.0f} s")
        replaced = self._replace_client(producer, self._report.stuck[-1])
        self._is_replaced = True
        return replaced

    def _replace_client(self, producer: Producer, error: str) -> Producer:
        log.warning("a new client is needed", topic=self._topic, error=error)
        self._give_up(producer)
        replacing = self._connect()
        for value in list(self._unacknowledged):
            self._send(replacing, value)
        return replacing

    def _give_up(self, producer: Producer) -> None:
        producer.purge()
        producer.flush(1)

    def _on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is not None and error.code() in _PURGED:
            return
        self._unacknowledged.pop(message.value().decode(), None)
        if error is not None:
            self._report.errors.append(str(error))
            return
        self._record_pause()
        if self._is_replaced:
            self._is_replaced = False
            if self._last_acknowledged_s - self._connected_s > _AT_ONCE_S:
                self._report.errors.append(self._report.stuck.pop())
        self._report.acknowledged.append(
            Acknowledged(partition=message.partition(), offset=message.offset(), value=message.value().decode())
        )

    def _record_pause(self) -> None:
        now_s = self._read_clock()
        pause_s = now_s - self._last_acknowledged_s
        self._last_acknowledged_s = now_s
        self._report.longest_pause_s = max(self._report.longest_pause_s, pause_s)


def read_back(bootstrap_servers: str, topic: str, *, deadline_s: float = 60.0, identity: Identity = NOBODY) -> set[str]:
    """Return every value of the topic, from the beginning to the end of each partition. Raises ReadBackError."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap_servers,
            "group.id": f"read-back-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "log_level": 2,
            **identity.librdkafka,
        }
    )
    try:
        partitions = _partitions(consumer, topic, deadline_s)
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        return _read_to_the_end(consumer, partitions, deadline_s)
    except KafkaException as error:
        raise ReadBackError(f"cannot read {topic} back: {error}") from error
    finally:
        consumer.close()


def find_lost(acknowledged: Iterable[Acknowledged], read: set[str]) -> list[Acknowledged]:
    """Return the acknowledged values that cannot be read; empty if the cluster lost nothing."""
    return [promise for promise in acknowledged if promise.value not in read]


def _partitions(consumer: Consumer, topic: str, deadline_s: float) -> set[int]:
    """Return the topic's partitions; retries if the connection ends, because another request of the client may end it."""
    deadline = time.monotonic() + deadline_s
    while True:
        try:
            metadata = consumer.list_topics(topic, timeout=15).topics[topic]
        except KafkaException as error:
            if error.args[0].code() != KafkaError._TRANSPORT or time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
            continue
        if metadata.error is not None:
            raise KafkaException(metadata.error)
        return set(metadata.partitions)


def _read_to_the_end(consumer: Consumer, partitions: set[int], deadline_s: float) -> set[str]:
    deadline = time.monotonic() + deadline_s
    left = set(partitions)
    last_error: KafkaError | None = None
    values: set[str] = set()
    while left:
        if time.monotonic() > deadline:
            raise ReadBackError(f"partitions {sorted(left)} have no end after {deadline_s:.0f} s: {last_error}")
        message = consumer.poll(0.5)
        if message is None:
            continue
        error = message.error()
        if error is None:
            values.add((message.value() or b"").decode())
        elif error.code() == _PARTITION_EOF:
            left.discard(message.partition())
        else:
            last_error = error
    return values
