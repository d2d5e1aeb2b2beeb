"""The metrics that operators of Kafka watch follow the events of the cluster."""

from simulation.cluster import Cluster, tp

ORDERS = tp("orders")


async def serve_brokers(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], config={"unclean.leader.election.enable": "true"})
    await cluster.settle()


async def test_leader_elections_are_counted_and_unclean_ones_apart(cluster: Cluster) -> None:
    await serve_brokers(cluster)
    assert cluster.active.metric("kontroller_leader_elections_total") == 0, "a first leader is no election"
    cluster.kill_broker(1)
    await cluster.settle()
    assert cluster.active.metric("kontroller_leader_elections_total") == 1
    assert cluster.active.metric("kontroller_unclean_leader_elections_total") == 0
    cluster.kill_broker(2)
    await cluster.settle()
    cluster.start_broker(1)
    await cluster.settle()
    assert cluster.leadership(ORDERS) == (1, [1])
    assert cluster.active.metric("kontroller_leader_elections_total") == 2
    assert cluster.active.metric("kontroller_unclean_leader_elections_total") == 1


async def test_counts_go_on_in_the_next_term_of_the_same_process(cluster: Cluster) -> None:
    await serve_brokers(cluster)
    cluster.kill_broker(1)
    await cluster.settle()
    cluster.zk.expire(cluster.active.session)
    await cluster.settle()
    assert cluster.active.terms == 2
    assert cluster.active.metric("kontroller_leader_elections_total") == 1


async def test_replicas_in_failed_directories_are_counted_until_their_broker_starts(cluster: Cluster) -> None:
    await serve_brokers(cluster)
    cluster.fail_log_dir(2, ORDERS)
    await cluster.settle()
    assert cluster.active.metric("kontroller_offline_replicas") == 1
    cluster.broker(2).offline.clear()
    cluster.bounce_broker(2)
    await cluster.settle()
    assert cluster.active.metric("kontroller_offline_replicas") == 0


async def test_a_deletion_that_waits_for_a_broker_is_told_from_one_that_goes_on(cluster: Cluster) -> None:
    await serve_brokers(cluster)
    cluster.broker(2).hang()
    cluster.request_deletion("orders")
    await cluster.settle()
    assert cluster.active.metric("kontroller_topics_to_delete") == 1
    assert cluster.active.metric("kontroller_topics_ineligible_to_delete") == 0
    cluster.kill_broker(2)
    await cluster.settle()
    assert cluster.active.metric("kontroller_topics_ineligible_to_delete") == 1
    cluster.start_broker(2)
    await cluster.settle()
    assert cluster.active.metric("kontroller_topics_to_delete") == 0
    assert cluster.active.metric("kontroller_topics_ineligible_to_delete") == 0


async def test_a_deletion_that_a_broker_refused_is_held_up(cluster: Cluster) -> None:
    await serve_brokers(cluster)
    cluster.broker(2).offline.add(ORDERS)
    cluster.request_deletion("orders")
    await cluster.settle()
    assert cluster.active.metric("kontroller_topics_ineligible_to_delete") == 1
    assert any("held up" in entry["event"] for entry in cluster.logs)
    cluster.broker(2).offline.clear()
    cluster.bounce_broker(2)
    await cluster.settle()
    assert cluster.active.metric("kontroller_topics_to_delete") == 0


async def test_a_partition_is_under_replicated_until_its_replica_is_back_in_sync(cluster: Cluster) -> None:
    await serve_brokers(cluster)
    assert cluster.active.metric("kontroller_under_replicated_partitions") == 0
    cluster.kill_broker(2)
    await cluster.settle()
    assert cluster.active.metric("kontroller_under_replicated_partitions") == 1
    assert cluster.active.metric("kontroller_offline_partitions") == 0
    cluster.start_broker(2)
    await cluster.settle()
    await cluster.replicate()
    assert cluster.leadership(ORDERS) == (1, [1, 2])
    assert cluster.active.metric("kontroller_under_replicated_partitions") == 0


async def test_copies_that_a_reassignment_still_makes_are_not_missing(cluster: Cluster) -> None:
    await serve_brokers(cluster)
    cluster.request_reassignment({ORDERS: [1, 3]})
    await cluster.settle()
    assert cluster.active.metric("kontroller_reassigning_partitions") == 1
    assert cluster.active.metric("kontroller_under_replicated_partitions") == 0
    cluster.kill_broker(2)
    await cluster.settle()
    assert cluster.active.metric("kontroller_under_replicated_partitions") == 1
