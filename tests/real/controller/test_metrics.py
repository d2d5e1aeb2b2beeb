"""What an operator of Kafka watches is there to be scraped."""

from devcluster.running.processes import wait_until
from tests.real.controller.clusters import OurCluster


def scraped(cluster: OurCluster, name: str) -> float | None:
    return cluster.controller.metric(name)


def test_an_offline_partition_and_a_leader_out_of_place_are_counted(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("counted-1", [[6]])
    our_cluster.serve_topic("counted-2", [[6, 1]])
    assert scraped(our_cluster, "kontroller_active_controller") == 1
    assert scraped(our_cluster, "kontroller_offline_partitions") == 0
    assert scraped(our_cluster, "kontroller_brokers") == 6
    imbalance = scraped(our_cluster, "kontroller_preferred_replica_imbalance")
    assert imbalance is not None
    our_cluster.kafka.broker(6).stop()
    wait_until(lambda: scraped(our_cluster, "kontroller_offline_partitions") == 1, "one is offline", deadline_s=30)
    assert (scraped(our_cluster, "kontroller_preferred_replica_imbalance") or 0) >= imbalance + 2
    our_cluster.kafka.broker(6).start()
    wait_until(lambda: scraped(our_cluster, "kontroller_offline_partitions") == 0, "none is offline", deadline_s=30)
