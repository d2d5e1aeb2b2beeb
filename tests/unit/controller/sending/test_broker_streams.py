"""The queue of requests for a broker is bounded and in order. Nothing is lost: missed requests are sent again."""

import pytest

from controller_core.controller.sending import channels
from controller_core.model.ids import TopicName
from controller_core.wire.link import BrokerLink
from controller_core.wire.messages import ControlRequest, ControlResponse, UpdateMetadataRequest
from controller_core.zk import paths
from simulation.brokers import SimulatedBrokerLink
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp

MOST = 5


@pytest.fixture
async def served(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr(channels, "MOST_WAITING", MOST)
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 3], [3, 2], [2, 3])
    await cluster.settle()
    return cluster


def count_waiting(cluster: Cluster, number: int) -> float | None:
    return cluster.active.metric("kontroller_broker_requests_in_flight", broker=str(number))


async def change_often(cluster: Cluster, times: int) -> None:
    for number in range(times):
        cluster.create_topic(f"topic-{number}", [1, 3], [3, 2])
        await cluster.settle()
        if number > 0:
            cluster.remove_topic(f"topic-{number - 1}")
            await cluster.settle()


async def test_what_waits_for_a_registered_broker_that_cannot_be_reached_is_bounded(served: Cluster) -> None:
    served.broker(3).cut_off()
    for number in range(30):
        served.move_broker(2, 9500 + number)
        await served.settle()
    before = count_waiting(served, 3)
    assert before is not None
    assert before <= MOST + 1
    assert any("sent everything when" in entry["event"] for entry in served.logs)


async def test_a_broker_that_missed_much_knows_everything_when_it_can_be_reached_again(served: Cluster) -> None:
    served.broker(3).cut_off()
    await change_often(served, 12)
    served.request_reassignment({tp("orders"): [1, 2], tp("orders", 1): [2, 1]})
    await served.settle()
    served.request_deletion("topic-11")
    await served.settle()
    served.broker(3).reconnect()
    await served.settle()
    await served.replicate()
    assert_sound(served)
    assert not {tp("orders"), tp("orders", 1), tp("topic-11")} & served.broker(3).logs.keys(), (
        "it was sent a request to delete"
    )
    assert not served.exists(paths.topic(TopicName("topic-11")))
    assert served.active.terms == 1


async def test_a_broker_with_all_its_memory_forgets_what_is_gone(served: Cluster) -> None:
    """It was out of reach, and not stopped: nothing but a request makes it forget a topic."""
    served.create_topic("gone", [1, 2])
    await served.settle()
    assert tp("gone") in served.broker(3).metadata.partitions
    broker = served.broker(3)
    broker.cut_off()
    served.remove_topic("gone")
    await served.settle()
    await change_often(served, 12)
    broker.reconnect()
    await served.settle()
    assert tp("gone") not in broker.metadata.partitions
    assert_sound(served)


async def test_a_slow_broker_that_answers_is_sent_everything_in_order(served: Cluster) -> None:
    served.broker(3).hang()
    await change_often(served, 12)
    assert (count_waiting(served, 3) or 0) > MOST
    served.broker(3).resume()
    await served.settle()
    assert not any("sent everything when" in entry["event"] for entry in served.logs)
    assert_sound(served)


async def test_what_waits_for_a_broker_that_answers_slowly_is_bounded_too(
    served: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "MOST_WAITING_FOR_SLOW", 2 * MOST)
    served.broker(3).hang()
    for number in range(20):
        served.create_topic(f"topic-{number}", [1, 3])
        await served.settle()
    assert (count_waiting(served, 3) or 0) <= 2 * MOST
    assert any("sent everything when" in entry["event"] for entry in served.logs)
    served.broker(3).resume()
    await served.settle()
    await served.replicate()
    assert all(tp(f"topic-{number}") in served.broker(3).logs for number in range(20))
    assert_sound(served)


async def test_requests_to_forget_do_not_count_because_they_are_never_dropped(
    served: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "MOST_WAITING_FOR_SLOW", 2 * MOST)
    for number in range(20):
        served.create_topic(f"topic-{number}", [1, 2])
    await served.settle()
    served.broker(3).hang()
    for number in range(20):
        served.remove_topic(f"topic-{number}")
        await served.settle()
    assert (count_waiting(served, 3) or 0) > 2 * MOST
    served.broker(3).resume()
    await served.settle()
    assert not any("sent everything when" in entry["event"] for entry in served.logs)
    assert_sound(served)


async def test_a_request_that_cannot_be_sent_ends_the_term_and_is_sent_by_the_next(
    served: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.surprises_expected = True
    send = SimulatedBrokerLink.send
    failed: list[ControlRequest] = []

    async def fail_once(self: BrokerLink, request: ControlRequest) -> ControlResponse:
        assert isinstance(self, SimulatedBrokerLink)
        if not failed and isinstance(request, UpdateMetadataRequest):
            failed.append(request)
            raise KeyError("nobody expected this")
        return await send(self, request)

    monkeypatch.setattr(SimulatedBrokerLink, "send", fail_once)
    served.create_topic("new", [1, 2])
    await served.settle(20_000)
    assert failed
    assert served.active.terms == 2
    assert any(entry["event"] == "control request cannot be sent" for entry in served.logs)
    assert_sound(served)
