"""LogDirEvent: a broker loses one of its two log directories and lives on."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from devcluster.clusters.kafka import lose_directory
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_empty, wait_until_in_sync
from tests.real.conformance.clusters import ConformanceCluster, Seen

NOTIFICATIONS = "/log_dir_event_notification"
HIT, SPARED = "on-the-lost-disk", "on-the-other-disk"


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDirectory:
    """The states of a broker's topics before and after it lost the directory of some, and when it was repaired."""

    broker: int
    other: int
    before: Mapping[str, Seen]
    after: Mapping[str, Seen]
    offline_replicas: list[int]
    left_notifications: list[str]
    back: Mapping[str, Seen]


@pytest.fixture(scope="session")
def lost_directory(started_cluster: ConformanceCluster) -> LostDirectory:
    cluster = started_cluster
    cluster.health_gate.open()
    other, broker, _ = cluster.order
    topics = _topics_on_both_directories(cluster, broker, other)
    before = {name: cluster.read_state(topic) for name, topic in topics.items()}
    directory = cluster.directory_of(broker, topics[HIT])
    assert directory is not None
    lose_directory(directory)
    cluster.wait_until_led(topics[HIT], other)
    wait_until_in_sync(cluster.znodes, topics[HIT], other)
    cluster.wait_until_everybody_knows(topics[HIT])
    wait_until_empty(cluster.znodes, NOTIFICATIONS)
    after = {name: cluster.read_state(topic) for name, topic in topics.items()}
    told = cluster.metadata_of_partition(other, topics[HIT])
    assert told is not None
    cluster.serve_topic("to-the-sound-disk", [[broker, other]])
    left = cluster.znodes.client.get_children(NOTIFICATIONS)
    cluster.kafka.broker(broker).stop()
    directory.unlink()
    directory.mkdir()
    cluster.kafka.broker(broker).start()
    for topic in (*topics.values(), "to-the-sound-disk"):
        cluster.wait_until_served(topic)
    return LostDirectory(
        broker=broker,
        other=other,
        before=before,
        after=after,
        offline_replicas=[*told.offline_replicas],
        left_notifications=left,
        back={name: cluster.read_state(topic) for name, topic in topics.items()},
    )


def _topics_on_both_directories(cluster: ConformanceCluster, broker: int, other: int) -> dict[str, str]:
    """Create two topics that the broker leads, each in another directory: it fills the emptier one first."""
    by_directory: dict[object, str] = {}
    for number in range(20):
        topic = f"on-a-disk-{number}"
        cluster.serve_topic(topic, [[broker, other]])
        wait_until(lambda topic=topic: cluster.directory_of(broker, topic) is not None, f"{topic} is there")  # type: ignore[misc]  # a lambda with a default
        by_directory.setdefault(cluster.directory_of(broker, topic), topic)
        if len(by_directory) == 2:
            hit, spared = by_directory.values()
            return {HIT: hit, SPARED: spared}
    raise AssertionError("the broker uses one of its directories only")


def test_a_leader_whose_log_is_lost_is_replaced_and_leaves_the_isr(lost_directory: LostDirectory) -> None:
    assert lost_directory.after[HIT].leadership == (lost_directory.other, [lost_directory.other])
    assert lost_directory.after[HIT].leader_epoch > lost_directory.before[HIT].leader_epoch


def test_clients_learn_that_the_replica_is_offline(lost_directory: LostDirectory) -> None:
    assert lost_directory.offline_replicas == [lost_directory.broker]


def test_what_the_broker_has_elsewhere_is_left_alone(lost_directory: LostDirectory) -> None:
    assert lost_directory.after[SPARED].leadership == lost_directory.before[SPARED].leadership


def test_the_notification_is_removed(lost_directory: LostDirectory) -> None:
    assert lost_directory.left_notifications == []


def test_a_broker_with_a_repaired_directory_follows_and_joins_again(lost_directory: LostDirectory) -> None:
    assert lost_directory.back[HIT].leadership == (
        lost_directory.other, sorted([lost_directory.broker, lost_directory.other]),
    )  # fmt: skip
