"""Brokers of both kinds that die, stop and sleep in any order under load.

No acknowledged message is lost, and all replicas have the same bytes at the end.
"""

import random
import time

import pytest

from devcluster.clients.load import AckedProducer, find_lost, read_back
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_acknowledged
from tests.real.replica_broker.mixed import OURS, MixedCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

ROTATED = [[3, 1, 2], [1, 2, 3], [2, 3, 1]]
CONFIG = {"min.insync.replicas": "2", "segment.bytes": "50000"}
DISTURBANCES = 10
SESSION_S = 6
"""A broker that dies or sleeps for longer then loses its session."""


def disturb(cluster: MixedCluster, broker: int, how: str, duration_s: float) -> None:
    """Disturb a broker. Ours is disturbed more often than the others, because it is the one that is tested."""
    disturbed = cluster.broker(broker)
    match how:
        case "sleep":
            disturbed.pause()
        case "kill":
            disturbed.kill(ends_session=False)
        case _:
            disturbed.stop()
    time.sleep(min(duration_s, SESSION_S))
    if duration_s > SESSION_S:
        disturbed.end_session()
        time.sleep(duration_s - SESSION_S)
    if how == "sleep":
        disturbed.resume()
        return
    disturbed.end_session()
    disturbed.start()


@pytest.mark.parametrize("seed", [1])
def test_nothing_is_lost_and_all_replicas_are_the_same(cluster: MixedCluster, seed: int) -> None:
    chance = random.Random(seed)
    topic = f"disturbed-{seed}"
    cluster.serve_topic(topic, ROTATED, CONFIG)
    with AckedProducer(cluster.bootstrap, topic, rate_per_s=300) as producer:
        for _ in range(DISTURBANCES):
            broker, how = chance.choice([1, 2, OURS, OURS, OURS]), chance.choice(["kill", "stop", "sleep"])
            disturb(cluster, broker, how, chance.uniform(0, SESSION_S + 2))
            if chance.random() < 0.7:
                cluster.wait_until_served(topic)
        cluster.wait_until_served(topic)
        wait_until_acknowledged(producer, 100)
    report = producer.stop()
    assert find_lost(report.acknowledged, read_back(cluster.bootstrap, topic)) == []
    for partition in range(len(ROTATED)):
        wait_until(lambda partition=partition: _are_the_same(cluster, f"{topic}-{partition}"), "all have the same")  # type: ignore[misc]  # a default


def _are_the_same(cluster: MixedCluster, folder: str) -> bool:
    def content(broker: int) -> bytes:
        segments = sorted((cluster.broker(broker).log_folder / folder).glob("*.log"))
        return b"".join(segment.read_bytes() for segment in segments)

    return content(1) == content(2) == content(OURS) != b""
