"""Somebody deletes the states of partitions, or deletes a topic and creates it again with its id. Brokers know later
epochs."""

from dataclasses import replace

import pytest

from controller_core.controller.znodes.partition_states import LOST_LEADER_EPOCH
from controller_core.model.ids import TopicName
from controller_core.model.transitions import PartitionStatus
from controller_core.wire.messages import ErrorCode
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, Delete
from simulation.checks import assert_sound
from simulation.cluster import Cluster, ids, tp

ORDERS = tp("orders")


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Three brokers, each with a replica of `orders`, whose epochs have risen; 1 leads."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    for broker in (1, 2):
        cluster.bounce_broker(broker)
        await cluster.settle()
        await cluster.replicate()
    assert cluster.leadership(ORDERS)[0] == 1
    return cluster


def delete_state(cluster: Cluster) -> None:
    cluster.write(Delete(path=paths.partition_state(ORDERS)))


async def assert_led_above(cluster: Cluster, leader_epoch: int, leader: int) -> None:
    await cluster.settle()
    state = cluster.state(ORDERS)
    assert state.leader_and_isr.leader == leader
    assert state.leader_and_isr.leader_epoch > leader_epoch
    assert cluster.broker(leader).leads(ORDERS)
    assert cluster.broker(leader).replicas[ORDERS].leader_epoch == state.leader_and_isr.leader_epoch
    assert cluster.broker(leader).replicas[ORDERS].partition_epoch == state.partition_epoch
    await cluster.replicate()
    assert sorted(cluster.leadership(ORDERS)[1]) == sorted(cluster.live)
    assert_sound(cluster)


async def test_a_deleted_state_is_restored_when_its_leader_dies(served: Cluster) -> None:
    before = served.state(ORDERS).leader_and_isr
    delete_state(served)
    served.kill_broker(1)
    await assert_led_above(served, before.leader_epoch, leader=2)


async def test_a_deleted_state_is_restored_when_a_follower_dies(served: Cluster) -> None:
    before = served.state(ORDERS).leader_and_isr
    delete_state(served)
    served.kill_broker(3)
    await assert_led_above(served, before.leader_epoch, leader=1)


async def test_a_deleted_state_is_restored_when_its_leader_asks_for_another_isr(served: Cluster) -> None:
    before = served.state(ORDERS).leader_and_isr
    delete_state(served)
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.invalid_update_version
    await assert_led_above(served, before.leader_epoch, leader=1)


async def test_a_restored_state_is_what_the_next_controller_finds(served: Cluster) -> None:
    before = served.state(ORDERS).leader_and_isr
    delete_state(served)
    served.kill_broker(1)
    await served.settle()
    await served.active.kill()
    await served.serve(1001)
    await assert_led_above(served, before.leader_epoch, leader=2)


async def test_a_state_whose_parents_are_gone_as_well_is_restored(served: Cluster) -> None:
    before = served.state(ORDERS).leader_and_isr
    served.remove(paths.partitions(ORDERS.topic))
    served.kill_broker(1)
    await assert_led_above(served, before.leader_epoch, leader=2)


async def test_a_state_is_restored_however_often_it_was_written(served: Cluster) -> None:
    for _ in range(700):
        served.put(paths.partition_state(ORDERS), served.data(paths.partition_state(ORDERS)) or b"")
    served.kill_broker(3)
    await served.settle()
    before = served.state(ORDERS)
    assert before.partition_epoch > 700
    delete_state(served)
    served.kill_broker(1)
    await assert_led_above(served, before.leader_and_isr.leader_epoch, leader=2)
    assert served.state(ORDERS).partition_epoch > before.partition_epoch


async def test_a_topic_that_is_created_again_with_its_id_goes_on_above_the_epochs_that_brokers_know(
    served: Cluster,
) -> None:
    before = served.state(ORDERS).leader_and_isr
    data = served.data(paths.topic(TopicName("orders"))) or b""
    served.remove(paths.topic(TopicName("orders")))
    served.write(Create(path=paths.topic(TopicName("orders")), data=data))
    await assert_led_above(served, before.leader_epoch, leader=1)


async def test_the_state_of_a_topic_that_vanished_is_not_restored(served: Cluster) -> None:
    served.remove(paths.topic(TopicName("orders")))
    served.kill_broker(1)
    await served.settle()
    assert not served.exists(paths.topic(TopicName("orders")))


@pytest.mark.parametrize("stands_by", [True, False])
async def test_a_new_controller_begins_a_partition_without_a_state_above_what_brokers_know(
    served: Cluster, stands_by: bool
) -> None:
    if stands_by:
        served.start_controller(1001)
        await served.settle()
    delete_state(served)
    await served.settle()
    await served.active.kill()
    if not stands_by:
        served.start_controller(1001)
    await served.settle(passing_ms=60_000)
    assert served.state(ORDERS).leader_and_isr.leader_epoch == LOST_LEADER_EPOCH
    await assert_led_above(served, LOST_LEADER_EPOCH - 1, leader=1)
    served.kill_broker(1)
    await assert_led_above(served, LOST_LEADER_EPOCH, leader=2)


@pytest.mark.parametrize("is_dead", [True, False], ids=["its leader is dead", "it has no leader"])
async def test_a_state_that_is_repaired_during_a_term_gets_a_live_leader(served: Cluster, is_dead: bool) -> None:
    before, data = served.state(ORDERS).leader_and_isr, served.data(paths.partition_state(ORDERS))
    assert data is not None
    await served.active.kill()
    served.put(paths.partition_state(ORDERS), b"garbled")
    await served.serve()
    if is_dead:
        served.kill_broker(before.leader)
        await served.settle()
    else:
        data = data.replace(b'"leader":1', b'"leader":-1')
    served.put(paths.partition_state(ORDERS), data)
    served.bounce_broker(3)
    await assert_led_above(served, before.leader_epoch, leader=2 if is_dead else 1)


async def test_a_repaired_state_without_a_live_replica_in_sync_waits_for_one(served: Cluster) -> None:
    before = served.state(ORDERS)
    alone = replace(before.leader_and_isr, isr=ids([1]))
    await served.active.kill()
    served.put(paths.partition_state(ORDERS), b"garbled")
    process = await served.serve()
    served.kill_broker(1)
    await served.settle()
    served.put(paths.partition_state(ORDERS), codecs.encode_partition_state(alone, before.controller_epoch))
    served.bounce_broker(3)
    await served.settle()
    assert process.term.state.partition_status[ORDERS] is PartitionStatus.OFFLINE
    served.start_broker(1)
    await served.settle()
    assert served.leadership(ORDERS)[0] == 1
    assert_sound(served)
