"""Brokers come and go: `on_broker_startup` and `on_broker_failure` of seed 000."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.wire.messages import ErrorCode, LeaderAndIsrRequest, UpdateMetadataRequest
from controller_core.zk import codecs, paths
from controller_core.zk.session import Check, SetData, WriteOp
from simulation.checks import assert_sound
from simulation.cluster import Cluster, ids, tp

ORDERS = tp("orders")


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Three brokers; `orders` on all of them, led by 1."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    assert cluster.leadership(ORDERS) == (1, [1, 2, 3])
    return cluster


async def test_a_dead_leader_is_replaced_by_the_first_live_replica_in_the_isr(served: Cluster) -> None:
    served.kill_broker(1)
    await served.settle()
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert served.broker(2).leads(ORDERS)
    assert served.broker(3).replicas[ORDERS].leader == 2
    assert_sound(served)


async def test_a_dead_follower_leaves_the_isr_and_the_leader_stays(served: Cluster) -> None:
    served.kill_broker(3)
    await served.settle()
    assert served.leadership(ORDERS) == (1, [1, 2])
    assert served.state(ORDERS).leader_and_isr.leader_epoch == 1
    assert_sound(served)


async def test_brokers_that_die_together_are_one_event_and_one_election(served: Cluster) -> None:
    served.kill_broker(1)
    served.kill_broker(2)
    await served.settle()
    assert served.leadership(ORDERS) == (3, [3])
    assert_sound(served)


async def test_many_partitions_of_a_dead_broker_are_one_transaction_and_one_request_to_each_other_broker(
    served: Cluster,
) -> None:
    """Each with its leader, ISR and epochs as they were written."""
    many = [tp("many", number) for number in range(30)]
    served.create_topic("many", *([1, 2, 3] for _ in many))
    await served.settle()
    written: list[Sequence[WriteOp]] = []
    served.zk.interventions.append(written.append)
    for number in (2, 3):
        served.broker(number).requests.clear()
    served.kill_broker(1)
    await served.settle()
    (election,) = [ops for ops in written if any(op.path == paths.partition_state(many[0]) for op in ops)]
    assert {op.path for op in election} == {paths.CONTROLLER_EPOCH, *map(paths.partition_state, [ORDERS, *many])}
    for number in (2, 3):
        (request,) = served.broker(number).requests_of(LeaderAndIsrRequest)
        sent = {
            tp(topic.topic_name, each.partition_index): (each.leader, each.isr, each.leader_epoch, each.partition_epoch)
            for topic in request.topic_states
            for each in topic.partition_states
        }
        assert sent == {partition: read_written(served, partition) for partition in (ORDERS, *many)}
    assert_sound(served)


def read_written(cluster: Cluster, partition: TopicPartition) -> tuple[int, tuple[int, ...], int, int]:
    state = cluster.state(partition)
    one = state.leader_and_isr
    return one.leader, one.isr, one.leader_epoch, state.partition_epoch


@pytest.mark.parametrize("times", [1, 3])
async def test_a_state_that_changes_between_the_decision_and_its_write_is_read_and_decided_again(
    served: Cluster, times: int
) -> None:
    """Somebody writes other ISRs, and the last of them counts; a second partition is written at once."""
    served.create_topic("undisturbed", [1, 2, 3])
    await served.settle()
    isrs = [[1, 2, 3], [1, 2], [1, 3]][-times:]
    before = served.state(ORDERS)

    def interfere(ops: Sequence[WriteOp]) -> None:
        is_ours = any(isinstance(op, Check) for op in ops)
        if is_ours and isrs and any(op.path == paths.partition_state(ORDERS) for op in ops):
            foreign = replace(before.leader_and_isr, isr=ids(isrs.pop(0)))
            data = codecs.encode_partition_state(foreign, before.controller_epoch)
            served.write(SetData(path=paths.partition_state(ORDERS), data=data))

    served.zk.interventions.append(interfere)
    served.kill_broker(1)
    await served.settle()
    assert isrs == []
    assert served.leadership(ORDERS) == (3, [3]), "2 was not in the ISR that was there at last"
    assert served.state(ORDERS).partition_epoch == before.partition_epoch + times + 1
    assert served.state(tp("undisturbed")).partition_epoch == 1
    assert served.leadership(tp("undisturbed")) == (2, [2, 3])
    assert_sound(served)


async def test_the_last_member_of_the_isr_stays_in_it_without_leading(served: Cluster) -> None:
    for broker in (2, 3, 1):
        served.kill_broker(broker)
        await served.settle()
    assert served.leadership(ORDERS) == (-1, [1])
    served.start_broker(2)
    await served.settle()
    assert served.leadership(ORDERS) == (-1, [1]), "2 may miss acknowledged messages"
    assert_sound(served)
    served.start_broker(1)
    await served.settle()
    assert served.leadership(ORDERS) == (1, [1])
    await served.replicate()
    assert served.leadership(ORDERS) == (1, [1, 2])
    assert_sound(served)


async def test_a_broker_that_returns_follows_and_joins_the_isr_again(served: Cluster) -> None:
    served.kill_broker(1)
    await served.settle()
    served.start_broker(1)
    await served.settle()
    assert served.broker(1).follows(ORDERS)
    assert served.leadership(ORDERS) == (2, [2, 3])
    await served.replicate()
    assert served.leadership(ORDERS) == (2, [2, 3, 1])
    assert_sound(served)


async def test_a_starting_broker_learns_of_its_peers_before_it_is_sent_whom_to_follow(served: Cluster) -> None:
    """It also learns of all partitions. The requests after that are about its own replicas alone."""
    served.create_topic("elsewhere", [1, 2])
    served.create_topic("waiting", [3])
    await served.settle()
    served.kill_broker(3)
    await served.settle()
    assert served.leadership(tp("waiting")) == (-1, [3])
    served.broker(3).requests.clear()
    served.start_broker(3)
    await served.settle()
    first, second, third = served.broker(3).requests[:3]
    assert isinstance(first, UpdateMetadataRequest)
    assert {broker.id for broker in first.live_brokers} == {1, 2, 3, served.active.id}
    assert {topic.topic_name for topic in first.topic_states} == {"orders", "elsewhere", "waiting"}
    assert isinstance(second, LeaderAndIsrRequest)
    leaders = {topic.topic_name: topic.partition_states[0].leader for topic in second.topic_states}
    assert leaders == {"orders": 1, "waiting": 3}
    assert isinstance(third, UpdateMetadataRequest)
    assert served.leadership(tp("waiting")) == (3, [3])
    assert_sound(served)


async def test_a_new_broker_without_replicas_learns_of_everything(served: Cluster) -> None:
    served.start_broker(7)
    await served.settle()
    assert ORDERS in served.broker(7).metadata.partitions
    assert BrokerId(7) in served.broker(1).metadata.live_brokers
    assert_sound(served)


async def test_a_broker_that_dies_without_replicas_leaves_everybodys_metadata(served: Cluster) -> None:
    served.start_broker(7)
    await served.settle()
    served.kill_broker(7)
    await served.settle()
    assert all(7 not in served.broker(number).metadata.live_brokers for number in (1, 2, 3))
    assert_sound(served)


async def test_a_leader_that_bounced_unnoticed_is_replaced_and_follows(served: Cluster) -> None:
    served.bounce_broker(1)
    await served.settle()
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert served.broker(1).follows(ORDERS)
    assert_sound(served)


async def test_the_only_replica_bounces_and_leads_again(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("lonely", [1])
    await cluster.settle()
    cluster.bounce_broker(1)
    await cluster.settle()
    assert cluster.leadership(tp("lonely")) == (1, [1])
    assert cluster.broker(1).leads(tp("lonely"))
    assert_sound(cluster)


async def test_all_brokers_bounce_together_and_everything_is_served_again(served: Cluster) -> None:
    for broker in (1, 2, 3):
        served.bounce_broker(broker)
    await served.replicate()
    leader, isr = served.leadership(ORDERS)
    assert leader in isr
    assert sorted(isr) == [1, 2, 3]
    assert_sound(served)


async def test_one_dies_while_another_starts(served: Cluster) -> None:
    served.kill_broker(3)
    await served.settle()
    served.kill_broker(1)
    served.start_broker(3)
    await served.replicate()
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert_sound(served)


async def test_a_broker_that_changes_its_port_is_sent_everything_at_the_new_one(served: Cluster) -> None:
    before = served.state(ORDERS)
    served.move_broker(2, port=7777)
    await served.settle()
    assert served.state(ORDERS) == before
    for number in (1, 2, 3):
        assert served.broker(number).metadata.live_brokers[BrokerId(2)].endpoints[0].port == 7777
    assert_sound(served)


async def test_what_waited_for_a_broker_under_its_old_address_reaches_it_under_the_new_one(served: Cluster) -> None:
    served.broker(2).hang()
    served.kill_broker(1)
    await served.settle()
    assert served.leadership(ORDERS) == (2, [2, 3])
    assert not served.broker(2).leads(ORDERS)
    served.move_broker(2, port=7777)
    served.broker(2).resume()
    await served.settle()
    assert served.broker(2).leads(ORDERS)
    assert_sound(served)


async def test_a_hanging_broker_holds_up_nobody_else_and_catches_up_when_it_answers(served: Cluster) -> None:
    served.broker(3).hang()
    served.kill_broker(1)
    served.create_topic("more", [2, 3])
    await served.settle()
    assert served.broker(2).leads(ORDERS)
    assert served.broker(2).leads(tp("more"))
    assert served.broker(3).replicas[ORDERS].leader == 1
    served.broker(3).resume()
    await served.settle()
    assert served.broker(3).replicas[ORDERS].leader == 2
    assert_sound(served)


async def test_a_broker_that_cannot_be_reached_is_sent_the_request_again_until_it_can(served: Cluster) -> None:
    served.broker(2).lose_next_answers(3)
    served.create_topic("more", [2, 3])
    await served.settle()
    assert served.broker(2).leads(tp("more"))
    assert_sound(served)


@pytest.mark.parametrize("error", [ErrorCode.unknown_server_error, ErrorCode.cluster_authorization_failed])
async def test_a_broker_that_answers_with_errors_holds_up_nobody(served: Cluster, error: ErrorCode) -> None:
    for _ in range(2):
        served.broker(3).answer_next_with(error)
    served.create_topic("more", [2, 3])
    await served.settle()
    assert served.broker(2).leads(tp("more"))
    assert [entry["error"] for entry in served.logs if entry["event"] == "broker refused a control request"] == [
        error.name
    ] * 2
    served.bounce_broker(3)
    await served.settle()
    assert_sound(served)


async def test_what_was_meant_for_a_former_life_of_a_broker_is_not_sent_to_the_next(served: Cluster) -> None:
    sent_before = len(served.broker(2).requests)
    served.broker(2).hang()
    served.kill_broker(3)
    await served.settle()
    served.bounce_broker(2)
    served.broker(2).hang()
    await served.settle()
    served.broker(2).resume()
    await served.settle()
    to_the_former = [r for r in served.broker(2).requests if r.broker_epoch < served.broker(2).epoch][sent_before:]
    assert len(to_the_former) == 1, "the one that was under way, which the broker refuses; not those that waited"
    assert_sound(served)


async def test_an_unreadable_registration_is_no_broker_until_it_is_repaired(served: Cluster) -> None:
    served.start_broker(4)
    data = served.data(paths.broker(BrokerId(4)))
    assert data is not None
    served.put(paths.broker(BrokerId(4)), b"{}")
    await served.settle()
    assert 4 not in served.active.term.state.brokers
    served.put(paths.broker(BrokerId(4)), data)
    await served.settle()
    assert 4 in served.active.term.state.brokers
    assert_sound(served)


async def test_a_broker_with_the_controllers_own_id_is_reported_and_ignored(served: Cluster) -> None:
    served.start_broker(served.active.id)
    await served.settle()
    assert served.active.id not in served.active.term.state.brokers
    assert any("registered under the controller's own id" in entry["event"] for entry in served.logs)


async def test_a_replica_that_a_broker_cannot_serve_is_reported(served: Cluster) -> None:
    served.broker(3).offline.add(ORDERS)
    served.kill_broker(1)
    await served.settle()
    assert served.leadership(ORDERS)[0] == 2
    reported = [entry["error"] for entry in served.logs if entry["event"].startswith("broker could not apply")]
    assert set(reported) == {"kafka_storage_error"}
