"""The metrics that operators of Kafka watch are exposed."""

from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_led
from tests.real.controller.clusters import OurCluster


def scrape(cluster: OurCluster, name: str) -> float | None:
    return cluster.controller.metric(name)


def leaders(cluster: OurCluster) -> list[tuple[int, int]]:
    """Return the leader (-1: none) and the preferred leader of every partition in ZooKeeper, including other tests'."""
    znodes = cluster.znodes
    return [
        (znodes.leader(topic, partition), replicas[0])
        for topic in znodes.client.get_children("/brokers/topics")
        for partition, replicas in znodes.partitions(topic).items()
    ]


def wait_until_counted(cluster: OurCluster) -> None:
    def is_counted() -> bool:
        known = leaders(cluster)
        offline = sum(leader == -1 for leader, _ in known)
        out_of_place = sum(leader != preferred for leader, preferred in known)
        return (
            scrape(cluster, "kontroller_offline_partitions") == offline
            and scrape(cluster, "kontroller_preferred_replica_imbalance") == out_of_place
        )

    wait_until(is_counted, "the metrics say what ZooKeeper has")


def test_an_offline_partition_and_a_leader_out_of_place_are_counted(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("counted-1", [[6]])
    our_cluster.serve_topic("counted-2", [[6, 1]])
    assert scrape(our_cluster, "kontroller_active_controller") == 1
    assert scrape(our_cluster, "kontroller_brokers") == 6
    wait_until_counted(our_cluster)
    our_cluster.kafka.broker(6).stop()
    wait_until_led(our_cluster.znodes, "counted-1", -1)
    wait_until_led(our_cluster.znodes, "counted-2", 1)
    wait_until_counted(our_cluster)
    our_cluster.kafka.broker(6).start()
    wait_until_led(our_cluster.znodes, "counted-1", 6)
    wait_until_counted(our_cluster)
