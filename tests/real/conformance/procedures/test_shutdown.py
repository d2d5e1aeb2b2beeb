"""ControlledShutdown: a broker requests it, hands over its leaders while it still runs, stops, and returns.

As with the crash, one shutdown serves most of the tests. It is first requested in the broker's name, so that the
controller's work is visible while the broker still runs; then the broker is really stopped.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.wire.messages import ControlledShutdownRequest, ControlledShutdownResponse, ErrorCode
from devcluster.clients.znodes import PREFERRED_ELECTION
from devcluster.waiting.under_load import nothing_lost
from tests.real.conformance.clusters import PREFERRED, ConformanceCluster, Seen
from tests.real.conformance.set_ups import mark_since

RELIEVED = ("Controlled shutdown request returned successfully", "Controlled shutdown succeeded")
"""The log lines of a broker after a controlled shutdown; the latter is Kafka 3.0's."""
TOPICS = ("handed-over", "second-is-behind", "left", "last-in-sync", "only-replica")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shutdown:
    """The states before a broker's request, after each of its two requests, and when it was back."""

    stopping: int
    second: int
    third: int
    before: Mapping[str, Seen]
    answers: tuple[ControlledShutdownResponse, ControlledShutdownResponse]
    after: Mapping[str, Seen]
    after_again: Mapping[str, Seen]
    led_in_its_own_eyes: int
    """The leader of `handed-over` according to the broker that is shutting down."""
    rejoining: ErrorCode
    elected: ErrorCode
    born: Seen
    unborn_had_a_state: bool
    back: Mapping[str, Seen]


def ask(cluster: ConformanceCluster, broker: int, epoch: int) -> ControlledShutdownResponse:
    request = ControlledShutdownRequest(broker_id=BrokerId(broker), broker_epoch=BrokerEpoch(epoch))
    response = cluster.ask_controller(request, ControlledShutdownResponse)
    assert isinstance(response, ControlledShutdownResponse)
    return response


def list_remaining_topics(answer: ControlledShutdownResponse) -> list[str]:
    """Return the topics of `TOPICS` in the answer: other tests' topics may also have no other replica in sync."""
    return [partition.topic_name for partition in answer.remaining_partitions if partition.topic_name in TOPICS]


@pytest.fixture(scope="session")
def shutdown(started_cluster: ConformanceCluster) -> Shutdown:
    cluster = started_cluster
    cluster.health_gate.open()
    third, stopping, second = cluster.order
    cluster.serve_topic("handed-over", [[stopping, second, third]])
    cluster.serve_topic("second-is-behind", [[stopping, second, third]])
    cluster.leave_in_isr("second-is-behind", [stopping, third])
    cluster.serve_topic("left", [[third, stopping]])
    cluster.serve_topic("last-in-sync", [[stopping, second]])
    cluster.leave_in_isr("last-in-sync", [stopping])
    cluster.serve_topic("only-replica", [[stopping]])
    before = {topic: cluster.read_state(topic) for topic in TOPICS}
    with cluster.pause_broker(second):  # otherwise it joins the ISR of `second-is-behind` again before that is read
        first_answer = ask(cluster, stopping, cluster.broker_epoch(stopping))
        after = {topic: cluster.read_state(topic) for topic in TOPICS}
    cluster.wait_until_everybody_knows("handed-over")
    told = cluster.metadata_of_partition(stopping, "handed-over")
    assert told is not None
    second_answer = ask(cluster, stopping, -1)
    after_again = {topic: cluster.read_state(topic) for topic in TOPICS if topic != "second-is-behind"}
    rejoining = cluster.alter_isr("left", [third, stopping]).error_code
    elected = cluster.elect(PREFERRED, ("handed-over", 0))["handed-over", 0]
    cluster.znodes.create_topic("born-meanwhile", [[stopping, second]])
    cluster.znodes.create_topic("unborn-meanwhile", [[stopping]])
    cluster.wait_until_led("born-meanwhile", second)
    born = cluster.read_state("born-meanwhile")
    unborn = cluster.exists("/brokers/topics/unborn-meanwhile/partitions/0/state")
    cluster.kafka.broker(stopping).restart()
    for topic in (*TOPICS, "born-meanwhile", "unborn-meanwhile"):
        cluster.wait_until_served(topic)
    return Shutdown(
        stopping=stopping,
        second=second,
        third=third,
        before=before,
        answers=(first_answer, second_answer),
        after=after,
        after_again=after_again,
        led_in_its_own_eyes=told.leader_id,
        rejoining=rejoining,
        elected=elected,
        born=born,
        unborn_had_a_state=unborn,
        back={topic: cluster.read_state(topic) for topic in TOPICS},
    )


def test_what_it_led_is_led_by_the_first_other_replica_in_the_isr(shutdown: Shutdown) -> None:
    assert shutdown.after["handed-over"].leadership == (shutdown.second, sorted([shutdown.second, shutdown.third]))
    assert shutdown.after["second-is-behind"].leadership == (shutdown.third, [shutdown.third])


def test_a_leadership_is_handed_over_with_one_write(shutdown: Shutdown) -> None:
    before, after = shutdown.before["handed-over"], shutdown.after["handed-over"]
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch + 1, before.partition_epoch + 1)


def test_where_it_followed_it_leaves_the_isr(shutdown: Shutdown) -> None:
    before, after = shutdown.before["left"], shutdown.after["left"]
    assert after.leadership == (shutdown.third, [shutdown.third])
    assert (after.leader_epoch, after.partition_epoch) == (before.leader_epoch + 1, before.partition_epoch + 1)


def test_the_answer_names_what_nobody_can_take_over(shutdown: Shutdown) -> None:
    """A partition without another replica is not named, because waiting for one would be in vain."""
    assert shutdown.answers[0].error_code is ErrorCode.none
    assert list_remaining_topics(shutdown.answers[0]) == ["last-in-sync"]


def test_what_nobody_can_take_over_is_not_touched(shutdown: Shutdown) -> None:
    for topic in ("last-in-sync", "only-replica"):
        assert shutdown.after[topic] == shutdown.before[topic]


def test_asking_again_changes_nothing(shutdown: Shutdown) -> None:
    """An epoch of -1, which brokers before KIP-380 send, is not compared."""
    assert shutdown.answers[1].error_code is ErrorCode.none
    assert list_remaining_topics(shutdown.answers[1]) == list_remaining_topics(shutdown.answers[0])
    for topic, seen in shutdown.after_again.items():
        assert seen.leadership == shutdown.after[topic].leadership


def test_the_broker_that_shuts_down_learns_who_leads_now(shutdown: Shutdown) -> None:
    """So that it stops answering as the leader (KAFKA-7482)."""
    assert shutdown.led_in_its_own_eyes == shutdown.second


def test_it_cannot_join_an_isr_again(shutdown: Shutdown) -> None:
    """Otherwise the leader would die together with it (KAFKA-14140, KIP-841)."""
    assert shutdown.rejoining is ErrorCode.ineligible_replica


def test_it_is_not_elected(shutdown: Shutdown) -> None:
    assert shutdown.elected is ErrorCode.preferred_leader_not_available


def test_a_topic_created_meanwhile_begins_without_it(shutdown: Shutdown) -> None:
    assert shutdown.born.leadership == (shutdown.second, [shutdown.second])
    assert not shutdown.unborn_had_a_state


def test_when_it_is_back_it_serves_like_any_other(shutdown: Shutdown) -> None:
    everybody = sorted([shutdown.stopping, shutdown.second, shutdown.third])
    assert shutdown.back["handed-over"].leadership == (shutdown.second, everybody)
    assert shutdown.back["left"].leadership == (shutdown.third, sorted([shutdown.third, shutdown.stopping]))
    assert shutdown.back["only-replica"].leader == shutdown.stopping


@mark_since("3.0", "they look for their controller among registered brokers when they stop, and do not find ours")
def test_a_stop_in_good_order_interrupts_no_producer_and_then_its_leaderships_are_given_back(
    cluster: ConformanceCluster,
) -> None:
    third, stopping, second = cluster.order
    cluster.serve_topic("in-order", [[stopping, second, third]], {"min.insync.replicas": "2"})
    with nothing_lost(cluster.kafka.bootstrap_servers, "in-order", identity=cluster.identity):
        cluster.kafka.broker(stopping).stop()
        assert cluster.znodes.leader("in-order", 0) == second
        assert cluster.znodes.isr("in-order", 0) == sorted([second, third])
        cluster.kafka.broker(stopping).start()
        cluster.wait_until_served("in-order")
    said = cluster.broker_log(stopping)
    assert any(words in said for words in RELIEVED)
    assert cluster.znodes.leader("in-order", 0) == second
    cluster.znodes.elect_preferred([("in-order", 0)])
    cluster.wait_until_led("in-order", stopping)
    cluster.wait_until_gone(PREFERRED_ELECTION)
