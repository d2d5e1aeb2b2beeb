"""`shutdownBroker` of seed 000: a broker that stops hands over its leaderships and leaves the ISRs first."""

from dataclasses import replace

import pytest

from controller_core.controller.sending import channels
from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, LeaderEpoch
from controller_core.wire.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ErrorCode,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from controller_core.zk import codecs, paths
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Three brokers; 1 leads `led`, follows in `followed`, and is alone in `alone`."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    for name, replicas in (("led", [1, 2, 3]), ("followed", [2, 1, 3]), ("alone", [1])):
        cluster.create_topic(name, replicas)
    await cluster.settle()
    return cluster


def list_remaining(response: ControlledShutdownResponse | None) -> list[tuple[str, int]]:
    assert response is not None
    assert response.error_code is ErrorCode.none
    return [(partition.topic_name, partition.partition_index) for partition in response.remaining_partitions]


async def test_leaderships_move_followers_stop_and_a_lonely_replica_is_left_alone(served: Cluster) -> None:
    assert list_remaining(await served.shut_down(1)) == []
    assert served.leadership(tp("led")) == (2, [2, 3])
    assert served.leadership(tp("followed")) == (2, [2, 3])
    assert served.leadership(tp("alone")) == (1, [1])
    assert served.broker(1).replicas[tp("led")].leader == 2, "it must learn whom it could follow (KAFKA-7482)"
    assert served.broker(1).replicas[tp("followed")].is_stopped
    assert served.broker(1).leads(tp("alone"))
    assert_sound(served)


def list_alive(cluster: Cluster) -> set[BrokerId]:
    """Return the brokers that broker 2 sees as alive."""
    return set(cluster.broker(2).metadata.live_brokers) - {BrokerId(cluster.active.id)}


async def test_a_broker_that_leads_nothing_any_more_is_not_listed_as_alive_until_it_returns(served: Cluster) -> None:
    """Otherwise a leader would wait for its replica although it will not be back in the ISR."""
    assert list_alive(served) == {1, 2, 3}
    await served.shut_down(3)
    assert list_alive(served) == {1, 2}
    served.kill_broker(3)
    await served.settle()
    served.start_broker(3)
    await served.settle()
    assert list_alive(served) == {1, 2, 3}
    await served.shut_down(1)
    assert list_alive(served) == {1, 2, 3}, "its clients have nobody else for what only it has"


async def test_the_next_controller_does_not_list_it_either(served: Cluster) -> None:
    await served.shut_down(3)
    await fail_over(served)
    assert list_alive(served) == {1, 2}
    assert_sound(served)


async def test_a_replica_that_led_until_now_is_not_stopped_and_one_that_followed_is_stopped_once(
    served: Cluster,
) -> None:
    """Like Kafka's controller: the first broker knows from LeaderAndIsr that it no longer leads."""
    await served.shut_down(1)
    sent = served.broker(1).requests_of(StopReplicaRequest)
    assert [topic.topic_name for request in sent for topic in request.topic_states] == ["followed"]
    assert not any(state.delete_partition for request in sent for state in request.topic_states[0].partition_states)
    await served.shut_down(1)
    sent = served.broker(1).requests_of(StopReplicaRequest)
    assert [topic.topic_name for request in sent for topic in request.topic_states] == ["followed", "led"]


async def test_asking_again_changes_nothing(served: Cluster) -> None:
    await served.shut_down(1)
    states = [served.state(tp(name)) for name in ("led", "followed", "alone")]
    assert list_remaining(await served.shut_down(1)) == []
    assert [served.state(tp(name)) for name in ("led", "followed", "alone")] == states


async def test_what_nobody_can_take_over_remains(served: Cluster) -> None:
    for number in (2, 3):
        served.kill_broker(number)
        await served.settle()
    assert served.leadership(tp("led")) == (1, [1])
    assert list_remaining(await served.shut_down(1)) == [("followed", 0), ("led", 0)]
    assert served.leadership(tp("led")) == (1, [1])
    served.start_broker(2)
    await served.replicate()
    assert served.leadership(tp("led")) == (1, [1, 2])
    assert list_remaining(await served.shut_down(1)) == []
    assert served.leadership(tp("led")) == (2, [2])


async def test_a_broker_that_shuts_down_joins_no_isr(served: Cluster) -> None:
    assert list_remaining(await served.shut_down(1)) == []
    assert await served.alter_isr(tp("led"), [2, 3, 1]) is ErrorCode.ineligible_replica


async def test_a_broker_that_falls_behind_while_it_shuts_down_does_not_follow_again(
    served: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channels, "MOST_WAITING", 3)
    monkeypatch.setattr(channels, "MOST_WAITING_FOR_SLOW", 3)
    await served.shut_down(1)
    stopping = served.broker(1)
    stopping.hang()
    stopping.requests.clear()
    for number in range(12):
        served.create_topic(f"new-{number}", [2, 3])
        await served.settle()
    stopping.resume()
    await served.settle(passing_ms=60_000)
    assert "broker can be reached again, it is sent everything" in [line["event"] for line in served.logs]
    assert tp("new-11") in stopping.metadata.partitions
    assert not stopping.requests_of(LeaderAndIsrRequest)
    assert stopping.replicas[tp("followed")].is_stopped


async def test_a_broker_whose_address_changes_while_it_shuts_down_does_not_follow_again(served: Cluster) -> None:
    await served.shut_down(1)
    stopping = served.broker(1)
    stopping.requests.clear()
    served.move_broker(1, port=7777)
    await served.settle()
    assert stopping.requests_of(UpdateMetadataRequest)
    assert not stopping.requests_of(LeaderAndIsrRequest)
    assert stopping.replicas[tp("followed")].is_stopped
    assert served.broker(2).metadata.live_brokers[BrokerId(1)].endpoints[0].port == 7777


@pytest.mark.parametrize("epoch", [None, -1], ids=["their own epochs", "-1"])
async def test_the_last_broker_stays_in_service_when_all_are_to_shut_down(served: Cluster, epoch: int | None) -> None:
    assert list_remaining(await served.shut_down(1, epoch=epoch)) == []
    assert list_remaining(await served.shut_down(2, epoch=epoch)) == []
    assert list_remaining(await served.shut_down(3, epoch=epoch)) == [("followed", 0), ("led", 0)]
    served.create_topic("new", [3, 1, 2])
    await served.settle()
    assert served.leadership(tp("new")) == (3, [3])
    assert {number for number in (1, 2, 3) if number in served.active.term.state.shutting_down} == {1, 2}
    assert_sound(served)


async def test_the_only_broker_of_a_cluster_may_stop_at_once_where_no_partition_has_another_replica(
    cluster: Cluster,
) -> None:
    cluster.start_brokers(1)
    await cluster.serve()
    cluster.create_topic("alone", [1])
    await cluster.settle()
    assert list_remaining(await cluster.shut_down(1)) == []
    assert cluster.leadership(tp("alone")) == (1, [1])


async def test_brokers_that_stop_together_leave_the_third_in_charge(served: Cluster) -> None:
    assert list_remaining(await served.shut_down(1)) == []
    assert list_remaining(await served.shut_down(2)) == []
    assert served.leadership(tp("led")) == (3, [3])
    assert served.leadership(tp("followed")) == (3, [3])


async def test_a_broker_that_stopped_and_returns_serves_again(served: Cluster) -> None:
    await served.shut_down(1)
    served.kill_broker(1)
    await served.settle()
    assert served.leadership(tp("alone")) == (-1, [1])
    served.start_broker(1)
    await served.replicate()
    assert served.leadership(tp("led")) == (2, [2, 3, 1])
    assert served.leadership(tp("alone")) == (1, [1])
    assert served.active.term.state.shutting_down == set()
    assert_sound(served)


async def test_a_broker_that_bounced_after_its_shutdown_is_no_longer_shutting_down(served: Cluster) -> None:
    await served.shut_down(1)
    served.bounce_broker(1)
    await served.replicate()
    assert served.leadership(tp("led")) == (2, [2, 3, 1])
    assert_sound(served)


async def test_a_former_life_of_a_broker_cannot_ask(served: Cluster) -> None:
    response = await served.shut_down(1, epoch=1)
    assert response is not None
    assert (response.error_code, response.remaining_partitions) == (ErrorCode.stale_broker_epoch, ())
    assert served.leadership(tp("led")) == (1, [1, 2, 3])


async def test_an_epoch_of_minus_1_is_not_checked(served: Cluster) -> None:
    assert list_remaining(await served.shut_down(1, epoch=-1)) == []
    assert served.leadership(tp("led")) == (2, [2, 3])


async def test_an_unknown_broker_cannot_ask(served: Cluster) -> None:
    request = ControlledShutdownRequest(broker_id=BrokerId(9), broker_epoch=BrokerEpoch(1))
    response = await served.ask(BrokerId(1), request)
    assert isinstance(response, ControlledShutdownResponse)
    assert response.error_code is ErrorCode.broker_not_available


async def test_a_broker_can_stop_while_it_is_being_moved_to_and_away_from(served: Cluster) -> None:
    served.start_broker(4)
    served.request_reassignment({tp("led"): [4, 2], tp("followed"): [2, 3]})
    await served.settle()
    await served.shut_down(4)
    await served.shut_down(1)
    for number in (4, 1):
        served.kill_broker(number)
        await served.settle()
        served.start_broker(number)
        await served.replicate()
    assert served.list_replicas(tp("led")) == [4, 2]
    assert served.list_replicas(tp("followed")) == [2, 3]
    assert_sound(served)


# A new controller


async def fail_over(cluster: Cluster) -> None:
    await cluster.active.kill()
    await cluster.serve(1001)
    await cluster.settle()


async def test_a_new_controller_gives_no_leadership_to_a_broker_that_is_about_to_stop(cluster: Cluster) -> None:
    cluster.settings = ProcessSettings(auto_leader_rebalance_enable=True)
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("led", *[[1, 2]] * 10)
    cluster.create_topic("alone", [1])
    await cluster.settle()
    assert list_remaining(await cluster.shut_down(1)) == []
    await fail_over(cluster)
    await cluster.replicate()
    await cluster.settle(passing_ms=600_000)
    assert [cluster.leadership(tp("led", number)) for number in range(10)] == [(2, [2])] * 10
    assert cluster.leadership(tp("alone")) == (1, [1])
    assert cluster.broker(1).leads(tp("alone"))
    cluster.bounce_broker(1)
    await cluster.replicate()
    await cluster.settle(passing_ms=600_000)
    assert cluster.leadership(tp("led")) == (1, [2, 1])
    assert_sound(cluster)


async def test_a_new_controller_takes_leaderships_again_that_another_one_gave(served: Cluster) -> None:
    await served.shut_down(1)
    await served.active.kill()
    state = served.state(tp("led")).leader_and_isr
    given = replace(state, leader=BrokerId(1), isr=(BrokerId(1), BrokerId(2)), leader_epoch=LeaderEpoch(9))
    served.put(paths.partition_state(tp("led")), codecs.encode_partition_state(given, ControllerEpoch(1)))
    await served.serve(1001)
    await served.settle()
    assert served.leadership(tp("led")) == (2, [2])
    assert_sound(served)


async def test_a_shutdown_that_was_granted_to_the_former_life_of_a_broker_is_over(served: Cluster) -> None:
    await served.shut_down(1)
    served.bounce_broker(1)
    await served.settle()
    await fail_over(served)
    await served.replicate()
    assert served.leadership(tp("led")) == (2, [2, 3, 1])
    assert await served.shut_down(2) is not None
    granted = codecs.decode_granted_shutdowns(served.data(paths.GRANTED_SHUTDOWNS) or b"")
    assert granted == {BrokerId(2): served.broker(2).epoch}


async def test_the_last_broker_goes_on_under_a_new_controller_though_it_may_stop(served: Cluster) -> None:
    await served.shut_down(1)
    served.kill_broker(2)
    served.kill_broker(3)
    await served.settle()
    await fail_over(served)
    served.create_topic("later", [1])
    await served.settle()
    assert served.leadership(tp("later")) == (1, [1])


async def test_an_unreadable_list_of_granted_shutdowns_is_begun_anew(served: Cluster) -> None:
    await served.shut_down(1)
    served.put(paths.GRANTED_SHUTDOWNS, b"{")
    await fail_over(served)
    assert list_remaining(await served.shut_down(2)) == []
    granted = codecs.decode_granted_shutdowns(served.data(paths.GRANTED_SHUTDOWNS) or b"")
    assert granted == {BrokerId(2): served.broker(2).epoch}
