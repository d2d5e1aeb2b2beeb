"""A promise that was not kept is noticed, and a client that is stuck is not taken for a cluster that is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, Producer

from devcluster.clients.load import AckedProducer, Acknowledged, LoadReport, find_lost
from devcluster.running.processes import wait_until
from tests.unit.devcluster.clients.refusing_broker import TOPIC, serve_refusing_broker

OnDelivery = Callable[[KafkaError | None, Any], None]


@dataclass(frozen=True, slots=True)
class Message:
    text: str

    def value(self) -> bytes:
        return self.text.encode()

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return int(self.text)


@dataclass(slots=True)
class Clock:
    """Goes on only while a client that is stuck is waited for."""

    now_s: float = 0.0


@dataclass(slots=True)
class Client:
    """A producer like librdkafka's. One that is stuck keeps its messages until they are purged."""

    clock: Clock
    is_stuck: bool
    kept: list[tuple[str, OnDelivery]] = field(default_factory=list)
    given: list[str] = field(default_factory=list)

    def produce(self, topic: str, *, value: str, on_delivery: OnDelivery) -> None:
        self.given.append(value)
        self.kept.append((value, on_delivery))

    def poll(self, timeout_s: float) -> None:
        self.flush(timeout_s)

    def flush(self, timeout_s: float) -> int:
        if self.is_stuck:
            self.clock.now_s += 10
        else:
            self._end(None)
        return len(self.kept)

    def purge(self) -> None:
        self._end(KafkaError(KafkaError._PURGE_QUEUE))

    def _end(self, error: KafkaError | None) -> None:
        kept, self.kept = self.kept, []
        for value, on_delivery in kept:
            on_delivery(error, Message(value))


def load_of(*clients: Client, until: Callable[[AckedProducer], bool], delivery_timeout_ms: int = 60_000) -> LoadReport:
    """Return the report of a load that uses one client after the other."""
    following = iter(clients)
    producer = AckedProducer(
        "nowhere:1",
        "topic",
        delivery_timeout_ms=delivery_timeout_ms,
        connect=lambda _: cast(Producer, next(following)),
        clock=lambda: clients[0].clock.now_s,
    )
    with producer:
        wait_until(lambda: until(producer), "enough was seen")
    return producer.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_what_a_stuck_client_has_not_sent_the_next_one_sends_and_it_is_no_error(clock: Clock) -> None:
    stuck, good = Client(clock, is_stuck=True), Client(clock, is_stuck=False)
    report = load_of(stuck, good, until=lambda load: load.acknowledged_count > 0)
    assert stuck.given
    assert good.given[: len(stuck.given)] == stuck.given
    assert [each.value for each in report.acknowledged] == good.given
    assert (report.errors, len(report.stuck), report.clients) == ([], 1, 2)


def test_a_client_that_is_stuck_at_the_end_is_replaced_too(clock: Clock) -> None:
    stuck, good = Client(clock, is_stuck=True), Client(clock, is_stuck=False)
    report = load_of(stuck, good, until=lambda _: bool(stuck.given))
    assert {each.value for each in report.acknowledged} == {*stuck.given, *good.given}
    assert (report.errors, len(report.stuck)) == ([], 1)


def test_where_no_client_gets_through_all_that_was_not_acknowledged_is_an_error(clock: Clock) -> None:
    clients = [Client(clock, is_stuck=True) for _ in range(10_000)]
    report = load_of(*clients, until=lambda _: bool(clients[2].given), delivery_timeout_ms=200)
    assert report.acknowledged == []
    assert f"{clients[0].given[0]} was not acknowledged" in report.errors


def test_where_the_next_client_gets_through_late_the_cluster_was_stuck(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devcluster.clients.load._AT_ONCE_S", -1.0)
    report = load_of(
        Client(clock, is_stuck=True), Client(clock, is_stuck=False), until=lambda load: load.acknowledged_count > 0
    )
    assert (len(report.errors), report.stuck) == (1, [])


def _acknowledge(value: str) -> Acknowledged:
    return Acknowledged(partition=0, offset=int(value), value=value)


def test_an_acknowledged_value_that_cannot_be_read_is_lost() -> None:
    promises = [_acknowledge("1"), _acknowledge("2"), _acknowledge("3")]
    assert find_lost(promises, {"1", "3", "4"}) == [_acknowledge("2")]


def test_values_that_were_never_acknowledged_are_no_loss() -> None:
    assert find_lost([_acknowledge("1")], {"1", "2"}) == []


def test_a_batch_that_a_new_leader_refused_is_not_acknowledged_with_the_next_one() -> None:
    with serve_refusing_broker() as broker, AckedProducer(broker.bootstrap, TOPIC, rate_per_s=5) as producer:
        wait_until(lambda: producer.acknowledged_count > 4, "the broker took messages")
        report = producer.stop()
        assert broker.taken == list(range(report.sent))
    assert [int(each.value) for each in report.acknowledged] == broker.taken
