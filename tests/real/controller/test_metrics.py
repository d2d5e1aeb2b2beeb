"""What an operator of Kafka watches is there to be scraped."""

import urllib.request

from devcluster.processes import wait_until
from tests.real.controller.clusters import OurCluster


def scraped(cluster: OurCluster, name: str) -> float | None:
    """The value of a metric without labels; None where it is not there."""
    with urllib.request.urlopen(f"http://127.0.0.1:{cluster.controller.metrics_port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    values = [float(line.split()[1]) for line in lines if line.split()[0] == name]
    return values[0] if values else None


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
