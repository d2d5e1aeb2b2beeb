"""`on_controller_failover` of seed 000: the state that a new controller finds, and its actions."""

import pytest

from controller_core.model.transitions import PartitionStatus, ReplicaStatus
from controller_core.wire.messages import LeaderAndIsrRequest, UpdateMetadataRequest
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, CreateMode
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp

ORDERS = tp("orders")


@pytest.fixture
async def abandoned(cluster: Cluster) -> Cluster:
    """Three brokers that serve `orders`, without a controller."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    await cluster.active.kill()
    return cluster


async def test_nothing_to_do_changes_no_state(abandoned: Cluster) -> None:
    before = abandoned.state(ORDERS)
    await abandoned.serve()
    assert abandoned.state(ORDERS) == before
    assert_sound(abandoned)


async def test_brokers_learn_of_each_other_before_anything_else(abandoned: Cluster) -> None:
    for broker in abandoned.brokers.values():
        broker.requests.clear()
    process = await abandoned.serve()
    for broker in abandoned.brokers.values():
        first, second, third = broker.requests[:3]
        assert isinstance(first, UpdateMetadataRequest)
        assert first.topic_states == ()
        assert {live.id for live in first.live_brokers} == {1, 2, 3, process.id}
        assert isinstance(second, LeaderAndIsrRequest), "every replica is sent its state again"
        assert isinstance(third, UpdateMetadataRequest)
        assert [topic.topic_name for topic in third.topic_states] == ["orders"]


async def test_all_begin_by_what_is_alive_and_are_sent_what_was_before_leaders_are_elected(cluster: Cluster) -> None:
    """Both state machines' startup, with every state that they can begin in."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    for name, replicas in {"healthy": [2, 3], "headless": [1, 2, 3], "lost": [1]}.items():
        cluster.create_topic(name, replicas)
    await cluster.settle()
    await cluster.active.kill()
    cluster.kill_broker(1)
    cluster.create_topic("new", [1, 3])
    for number in (2, 3):
        cluster.broker(number).requests.clear()
    healthy = cluster.state(tp("healthy"))
    state = (await cluster.serve()).term.state
    alive, dead = ReplicaStatus.ONLINE, ReplicaStatus.OFFLINE
    assert {(str(replica.topic_partition), replica.broker): status for replica, status in state.replica_status.items()} == {
        ("healthy-0", 2): alive, ("healthy-0", 3): alive, ("headless-0", 1): dead, ("headless-0", 2): alive,
        ("headless-0", 3): alive, ("lost-0", 1): dead, ("new-0", 1): dead, ("new-0", 3): alive,
    }  # fmt: skip
    assert {str(partition): status for partition, status in state.partition_status.items()} == {
        "healthy-0": PartitionStatus.ONLINE,
        "headless-0": PartitionStatus.ONLINE,
        "lost-0": PartitionStatus.OFFLINE,
        "new-0": PartitionStatus.ONLINE,
    }
    sent = [
        {topic.topic_name: topic.partition_states[0].leader for topic in request.topic_states}
        for request in cluster.broker(3).requests_of(LeaderAndIsrRequest)
    ]
    assert sent == [{"healthy": 2, "headless": 1}, {"headless": 2, "new": 3}]
    assert cluster.state(tp("healthy")) == healthy
    assert (cluster.leadership(tp("headless")), cluster.leadership(tp("new"))) == ((2, [2, 3]), (3, [3]))
    assert_sound(cluster)


async def test_a_dead_leader_is_replaced_and_a_dead_follower_leaves_the_isr(abandoned: Cluster) -> None:
    abandoned.kill_broker(1)
    process = await abandoned.serve()
    assert abandoned.leadership(ORDERS) == (2, [2, 3])
    assert process.term.state.partition_status[ORDERS] is PartitionStatus.ONLINE
    await process.kill()
    abandoned.kill_broker(3)
    process = await abandoned.serve()
    assert abandoned.leadership(ORDERS) == (2, [2])
    replicas = {replica.broker: status for replica, status in process.term.state.replica_status.items()}
    assert replicas == {1: ReplicaStatus.OFFLINE, 2: ReplicaStatus.ONLINE, 3: ReplicaStatus.OFFLINE}
    assert_sound(abandoned)


async def test_where_everybody_is_dead_the_isr_is_kept_without_a_leader(abandoned: Cluster) -> None:
    for number in (1, 2, 3):
        abandoned.kill_broker(number)
    process = await abandoned.serve()
    assert abandoned.leadership(ORDERS) == (-1, [1, 2, 3])
    assert process.term.state.partition_status[ORDERS] is PartitionStatus.OFFLINE
    abandoned.start_broker(3)
    await abandoned.settle()
    assert abandoned.leadership(ORDERS) == (3, [3])
    assert_sound(abandoned)


async def test_what_changed_without_a_controller_is_taken_over(abandoned: Cluster) -> None:
    abandoned.bounce_broker(2)
    abandoned.create_topic("new", [2, 3])
    abandoned.add_partitions("orders", [3, 1])
    await abandoned.serve()
    assert abandoned.leadership(tp("new")) == (2, [2, 3])
    assert abandoned.leadership(tp("orders", 1)) == (3, [3, 1])
    await abandoned.replicate()
    assert sorted(abandoned.leadership(ORDERS)[1]) == [1, 2, 3]
    assert_sound(abandoned)


async def test_old_isr_notifications_are_removed_and_new_ones_noticed(abandoned: Cluster) -> None:
    data = codecs.encode_partitions([ORDERS])
    notify = Create(path=paths.ISR_CHANGE_PREFIX, data=data, mode=CreateMode.PERSISTENT_SEQUENTIAL)
    abandoned.write(notify)
    await abandoned.serve()
    assert abandoned.zk.tree.children(paths.ISR_CHANGE_NOTIFICATION) == ()
    abandoned.write(notify)
    await abandoned.settle()
    assert abandoned.zk.tree.children(paths.ISR_CHANGE_NOTIFICATION) == ()


async def test_an_unreadable_state_is_left_alone_and_holds_up_no_other(abandoned: Cluster) -> None:
    abandoned.add_partitions("orders", [1, 2])
    abandoned.put(paths.partition_state(ORDERS), b"garbled")
    await abandoned.serve()
    assert abandoned.data(paths.partition_state(ORDERS)) == b"garbled"
    assert abandoned.leadership(tp("orders", 1)) == (1, [1, 2])
    assert any(entry["event"].startswith("unreadable partition state") for entry in abandoned.logs)


async def test_a_broker_that_hangs_does_not_hold_up_the_takeover(abandoned: Cluster) -> None:
    abandoned.start_broker(4)
    abandoned.broker(3).hang()
    abandoned.kill_broker(1)
    await abandoned.serve()
    assert abandoned.broker(2).leads(ORDERS)
    abandoned.broker(3).resume()
    await abandoned.settle()
    assert abandoned.broker(3).follows(ORDERS)
    assert_sound(abandoned)


async def test_a_controller_takes_over_again_and_again(abandoned: Cluster) -> None:
    for expected in range(2, 8):
        process = await abandoned.serve()
        assert process.term.identity.epoch == expected
        assert_sound(abandoned)
        await process.kill()
