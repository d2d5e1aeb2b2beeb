"""Leaders go back to their preferred replicas by themselves."""

from dataclasses import replace

import pytest

from controller_core.controller.operations.leader_rebalance import FIRST_LOOK_AFTER_MS
from controller_core.model.ids import PartitionId
from controller_core.model.metadata import ReplicaAssignment
from controller_core.zk import codecs, paths
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp
from simulation.process import ProcessSettings

ORDERS = tp("orders")
INTERVAL_MS = 300_000
ADDRESS_CACHE_MS = 40_000


async def move_leader(cluster: Cluster, *, enabled: bool = True) -> None:
    """1 should lead `orders`, was away, and is in sync again."""
    cluster.settings = ProcessSettings(auto_leader_rebalance_enable=enabled)
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.start_broker(1)
    await cluster.replicate()


async def test_leaders_go_back_soon_after_a_term_begins_and_then_in_every_interval(cluster: Cluster) -> None:
    await move_leader(cluster)
    await cluster.active.kill()
    await cluster.serve()
    assert cluster.leadership(ORDERS)[0] == 2
    await cluster.settle(FIRST_LOOK_AFTER_MS)
    assert cluster.leadership(ORDERS)[0] == 1
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.start_broker(1)
    await cluster.replicate()
    assert cluster.leadership(ORDERS)[0] == 2
    await cluster.settle(INTERVAL_MS)
    assert cluster.leadership(ORDERS)[0] == 1
    assert_sound(cluster)


async def test_whoever_does_not_want_it_switches_it_off(cluster: Cluster) -> None:
    await move_leader(cluster, enabled=False)
    await cluster.settle(INTERVAL_MS * 3)
    assert cluster.leadership(ORDERS)[0] == 2


async def test_a_preferred_replica_that_is_not_in_sync_is_not_tried(cluster: Cluster) -> None:
    cluster.settings = ProcessSettings(auto_leader_rebalance_enable=True)
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.start_broker(1)
    await cluster.settle(INTERVAL_MS * 3)
    assert cluster.leadership(ORDERS)[0] == 2
    assert [entry for entry in cluster.logs if entry["event"] == "no leader elected"] == []


async def test_a_controller_that_lost_its_role_gives_nothing_back(cluster: Cluster) -> None:
    await move_leader(cluster)
    former = cluster.active
    cluster.zk.expire(former.session)
    await cluster.settle(0)
    await former.stop()
    await cluster.settle(INTERVAL_MS)
    assert cluster.leadership(ORDERS)[0] == 2


async def test_a_topic_on_its_way_out_is_left_alone(cluster: Cluster) -> None:
    await move_leader(cluster)
    cluster.kill_broker(3)
    await cluster.settle(0)
    cluster.request_deletion("orders")
    await cluster.settle(INTERVAL_MS)
    assert cluster.leadership(ORDERS)[0] != 1
    assert cluster.active.metric("kontroller_topics_ineligible_to_delete") == 1


async def test_a_partition_that_is_being_reassigned_gets_its_leader_back_too(cluster: Cluster) -> None:
    await move_leader(cluster)
    cluster.start_broker(4)
    cluster.request_reassignment({ORDERS: [1, 2, 4]})
    await cluster.settle(INTERVAL_MS)
    assert cluster.active.metric("kontroller_reassigning_partitions") == 1, "4 is not in sync yet"
    assert cluster.leadership(ORDERS)[0] == 1


@pytest.mark.parametrize(("missed", "is_rebalanced"), [(1, False), (2, True)])
async def test_a_broker_may_miss_some_of_its_leaderships(cluster: Cluster, missed: int, is_rebalanced: bool) -> None:
    cluster.settings = ProcessSettings(auto_leader_rebalance_enable=True, leader_imbalance_per_broker_percentage=10)
    cluster.start_brokers(1, 2)
    for number in range(10):
        cluster.create_topic(f"topic-{number}", [1, 2])
    await cluster.serve()
    elsewhere = [tp(f"topic-{number}") for number in range(missed)]
    await cluster.settle()
    for partition in elsewhere:
        cluster.fail_log_dir(1, partition)
    await cluster.settle()
    cluster.broker(1).offline.clear()
    cluster.fail_log_dir(1)
    await cluster.replicate()
    assert [cluster.leadership(partition) for partition in elsewhere] == [(2, [2, 1])] * missed
    await cluster.settle(INTERVAL_MS)
    assert all((cluster.leadership(partition)[0] == 1) is is_rebalanced for partition in elsewhere)


async def test_a_partition_without_replicas_stops_nobody(cluster: Cluster) -> None:
    """Some other program emptied the list; Kafka's tools refuse to."""
    cluster.settings = ProcessSettings(auto_leader_rebalance_enable=True)
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    nobody = {PartitionId(0): ReplicaAssignment(replicas=())}
    content = replace(cluster.topic("orders"), partitions=nobody)
    await cluster.active.kill()
    cluster.put(paths.topic(ORDERS.topic), codecs.encode_topic(content))
    await cluster.serve(1001)
    cluster.request_election(ORDERS)
    await cluster.settle(INTERVAL_MS)
    assert cluster.active.metric("kontroller_preferred_replica_imbalance") == 1
    assert not cluster.exists(paths.PREFERRED_REPLICA_ELECTION)


# A drained broker


async def drain(cluster: Cluster, number: int) -> None:
    """Stop a broker in order."""
    assert await cluster.shut_down(number) is not None
    cluster.kill_broker(number)
    await cluster.settle()


@pytest.fixture
async def drained(cluster: Cluster) -> Cluster:
    """Broker 1 should lead `orders`, and was drained. The first check of the term is over."""
    cluster.settings = ProcessSettings(auto_leader_rebalance_enable=True)
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    cluster.create_topic("others", [2, 3, 1])
    await cluster.settle(FIRST_LOOK_AFTER_MS)
    await drain(cluster, 1)
    return cluster


async def test_a_drained_broker_leads_again_when_clients_have_forgotten_its_former_address(drained: Cluster) -> None:
    drained.start_broker(1)
    await drained.replicate()
    await drained.settle(ADDRESS_CACHE_MS - 1)
    assert drained.leadership(ORDERS)[0] == 2
    await drained.settle(ADDRESS_CACHE_MS)
    assert drained.leadership(ORDERS)[0] == 1
    assert_sound(drained)


async def test_a_drained_broker_leads_again_as_soon_as_it_is_in_sync(drained: Cluster) -> None:
    drained.start_broker(1)
    await drained.settle(ADDRESS_CACHE_MS * 2)
    assert drained.leadership(ORDERS)[0] == 2
    await drained.replicate()
    await drained.settle(FIRST_LOOK_AFTER_MS)
    assert drained.leadership(ORDERS)[0] == 1


async def test_a_new_controller_gives_a_drained_broker_its_leaderships_back(drained: Cluster) -> None:
    await drained.active.kill()
    await drained.serve(1001)
    await drained.settle(FIRST_LOOK_AFTER_MS)
    drained.start_broker(1)
    await drained.replicate()
    await drained.settle(ADDRESS_CACHE_MS)
    assert drained.leadership(ORDERS)[0] == 1


async def test_a_broker_that_crashed_waits_for_the_next_check_while_a_drained_one_returns(drained: Cluster) -> None:
    drained.kill_broker(2)
    await drained.settle()
    for number in (1, 2):
        drained.start_broker(number)
    await drained.replicate()
    await drained.settle(ADDRESS_CACHE_MS)
    assert drained.leadership(ORDERS)[0] == 1
    assert drained.leadership(tp("others"))[0] == 3
    await drained.settle(INTERVAL_MS)
    assert drained.leadership(tp("others"))[0] == 2


async def test_a_broker_that_is_restarted_again_has_another_address_to_forget(drained: Cluster) -> None:
    drained.start_broker(1)
    await drained.replicate()
    await drained.settle(ADDRESS_CACHE_MS - 1)
    await drain(drained, 1)
    drained.start_broker(1)
    await drained.replicate()
    await drained.settle(ADDRESS_CACHE_MS - 1)
    assert drained.leadership(ORDERS)[0] == 2
    await drained.settle(ADDRESS_CACHE_MS)
    assert drained.leadership(ORDERS)[0] == 1


async def test_a_drained_broker_gets_nothing_back_if_leaders_stay_where_they_are(cluster: Cluster) -> None:
    await move_leader(cluster, enabled=False)
    cluster.request_election(ORDERS)
    await cluster.settle()
    await drain(cluster, 1)
    cluster.start_broker(1)
    await cluster.replicate()
    await cluster.settle(ADDRESS_CACHE_MS * 2)
    assert cluster.leadership(ORDERS)[0] == 2
