"""Partitions that are moved to our broker and away from it under load."""

import pytest

from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_gone, wait_until_moved
from tests.real.replica_broker.mixed import MixedCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("topic", "origin", "target"),
    [
        ("to-ours", [1, 2], [3, 2]),
        ("from-ours", [3, 1], [2, 1]),
        ("beside-ours", [1, 3], [2, 3]),
    ],
)
def test_a_partition_moves_and_nothing_is_lost(
    cluster: MixedCluster, topic: str, origin: list[int], target: list[int]
) -> None:
    cluster.serve_topic(topic, [origin])
    with nothing_lost(cluster.bootstrap, topic, more_than=200):
        cluster.znodes.reassign({(topic, 0): target})
        wait_until_moved(cluster.znodes, topic, target)
    cluster.wait_until_served(topic)
    assert cluster.znodes.leader(topic, 0) in target
    for broker in {1, 2, 3} - set(target):
        folder = cluster.broker(broker).log_folder / f"{topic}-0"
        wait_until(lambda folder=folder: not folder.exists(), f"broker {broker} has deleted {topic}-0")  # type: ignore[misc]  # a default


def test_a_deleted_topic_leaves_nothing_on_our_broker(cluster: MixedCluster) -> None:
    cluster.serve_topic("deleted", [[3, 1], [2, 3]])
    cluster.znodes.mark_for_deletion("deleted")
    wait_until_gone(cluster.znodes, "/brokers/topics/deleted")
    wait_until(lambda: not list(cluster.ours.log_folder.glob("deleted-*")), "its logs are gone")
    cluster.serve_topic("deleted", [[3, 1], [2, 3]])
