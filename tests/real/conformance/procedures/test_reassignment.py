"""Reassignment, requested in ZooKeeper and by request (KIP-455): its checks, its steps, and its cancellation.

A paused broker is never in sync, so a reassignment to it stops halfway and can be observed. The crash of a controller
at every step is in `tests/real/controller`.
"""

import threading

import pytest

from controller_core.wire.messages import ErrorCode
from devcluster.clients.znodes import REASSIGN_PARTITIONS
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_reassigning
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.set_ups import ours_only

NOBODY = 99


# Checks of requests


@pytest.mark.parametrize(
    ("topic", "partition", "target", "error"),
    [
        ("checked", 0, [], ErrorCode.invalid_replica_assignment),
        ("checked", 0, [1, 1], ErrorCode.invalid_replica_assignment),
        ("checked", 0, [1, -1], ErrorCode.invalid_replica_assignment),
        ("checked", 0, [1, NOBODY], ErrorCode.invalid_replica_assignment),
        ("checked", 0, None, ErrorCode.no_reassignment_in_progress),
        ("checked", 9, [1], ErrorCode.unknown_topic_or_partition),
        ("ghost", 0, [1], ErrorCode.unknown_topic_or_partition),
        ("ghost", 0, None, ErrorCode.no_reassignment_in_progress),
        ("ghost", 0, [1, 1], ErrorCode.invalid_replica_assignment),
        ("ghost", 0, [NOBODY], ErrorCode.invalid_replica_assignment),
        ("checked", 0, [1, 2], ErrorCode.none),
    ],
    ids=[
        "no replicas", "a replica twice", "a negative id", "a broker that is not alive", "nothing to cancel",
        "an unknown partition", "an unknown topic", "an unknown topic to cancel", "the target before the topic",
        "a dead target before the topic", "what is so already",
    ],
)  # fmt: skip
def test_a_request_is_checked_as_kafka_checks_it(
    cluster: ConformanceCluster, topic: str, partition: int, target: list[int] | None, error: ErrorCode
) -> None:
    if not cluster.exists("/brokers/topics/checked"):
        cluster.serve_topic("checked", [[1, 2]])
    before = cluster.read_state("checked")
    assert cluster.reassign((topic, partition, target)) == [error]
    assert cluster.list_reassignments() == {}
    if error is not ErrorCode.none:
        assert cluster.read_state("checked") == before


def test_a_bad_entry_holds_up_no_good_one(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("one-good", [[1, 2]])
    answers = cluster.reassign(("ghost", 0, [1]), ("one-good", 0, [2, 3]))
    assert answers == [ErrorCode.unknown_topic_or_partition, ErrorCode.none]
    cluster.wait_until_moved("one-good", [2, 3])


@pytest.mark.parametrize("content", ["ghost", "no such partition"])
def test_an_impossible_request_in_zookeeper_is_removed_and_the_next_one_is_done(
    cluster: ConformanceCluster, content: str
) -> None:
    topic = f"sound-{content.replace(' ', '-')}"
    cluster.serve_topic(topic, [[1, 2]])
    bad: dict[str, dict[tuple[str, int], list[int]]] = {
        "ghost": {("ghost", 0): [1]},
        "no such partition": {(topic, 9): [1]},
    }
    cluster.znodes.reassign(bad[content])
    cluster.wait_until_gone(REASSIGN_PARTITIONS)
    assert cluster.znodes.read_assignment(topic, 0) == [1, 2]
    cluster.znodes.reassign({(topic, 0): [2, 3], **bad[content]})
    cluster.wait_until_moved(topic, [2, 3])


@ours_only
@pytest.mark.parametrize(
    "content", [b"{not json", b"", b"[1, 2]", b'{"version":1,"partitions":"all"}', b'{"version":1,"partitions":[]}']
)
def test_an_unreadable_request_in_zookeeper_is_removed(cluster: ConformanceCluster, content: bytes) -> None:
    """Kafka's controller leaves it there, where it blocks every other request."""
    cluster.znodes.client.create(REASSIGN_PARTITIONS, content)
    cluster.wait_until_gone(REASSIGN_PARTITIONS)


@ours_only
@pytest.mark.parametrize(
    "target",
    [[1, NOBODY], [1000], [1, 1], []],
    ids=["a broker that is not alive", "the controller", "a broker twice", "no replicas"],
)
def test_an_impossible_target_in_zookeeper_is_refused(cluster: ConformanceCluster, target: list[int]) -> None:
    """Kafka's controller begins, and waits forever; the znode also blocks everybody else."""
    topic = f"hopeless-{'-'.join(map(str, target))}"
    cluster.serve_topic(topic, [[1, 2]])
    cluster.znodes.reassign({(topic, 0): target})
    cluster.wait_until_gone(REASSIGN_PARTITIONS)
    assert cluster.znodes.read_assignment(topic, 0) == [1, 2]


# Steps


def test_a_partition_moves_while_it_is_written_to_and_nothing_is_lost(cluster: ConformanceCluster) -> None:
    """AR has all replicas from the beginning to the end, and the leader moves only when the target is in sync."""
    cluster.serve_topic("on-its-way", [[1, 2]], {"min.insync.replicas": "2"})
    rows: list[tuple[list[int], int, list[int]]] = []
    finished = threading.Event()

    def note_rows() -> None:
        while not finished.is_set():
            before = sorted(cluster.znodes.read_assignment("on-its-way", 0))
            state = cluster.znodes.state("on-its-way", 0)
            row = (sorted(cluster.znodes.read_assignment("on-its-way", 0)), state["leader"], sorted(state["isr"]))
            if row not in rows and row[0] == before:  # otherwise the two znodes were not read at one moment
                rows.append(row)

    watcher = threading.Thread(target=note_rows)
    watcher.start()
    try:
        with nothing_lost(cluster.kafka.bootstrap_servers, "on-its-way", identity=cluster.identity):
            assert cluster.reassign(("on-its-way", 0, [3, 2])) == [ErrorCode.none]
            cluster.wait_until_moved("on-its-way", [3, 2])
    finally:
        finished.set()
        watcher.join()
    assert rows[0] == ([1, 2], 1, [1, 2])
    assert rows[-1] == ([2, 3], 3, [2, 3])
    assert all(3 in isr for _, leader, isr in rows if leader == 3), "the leader moves when the target is in sync"
    assert all(assigned == [1, 2, 3] for assigned, leader, _ in rows[1:-1] if leader == 1)
    cluster.wait_until_only_replicas_have_logs("on-its-way")
    cluster.wait_until_everybody_knows("on-its-way")


def test_the_replicas_that_are_added_are_sent_the_next_leader_epoch(cluster: ConformanceCluster) -> None:
    first, second, third = cluster.order
    cluster.serve_topic("announced", [[first, second]])
    before = cluster.read_state("announced")
    with cluster.pause_broker(third):
        assert cluster.reassign(("announced", 0, [second, third])) == [ErrorCode.none]
        cluster.wait(lambda: cluster.read_state("announced").leader_epoch == before.leader_epoch + 1, "the next epoch")
        seen = cluster.read_state("announced")
        assert (seen.leader, seen.isr, seen.partition_epoch) == (first, before.isr, before.partition_epoch + 1)
        assert cluster.list_reassignments(("announced", 0)) == {
            ("announced", 0): ([second, third, first], [third], [first])
        }
        cluster.wait(
            lambda: (
                (told := cluster.metadata_of_partition(second, "announced")) is not None
                and [*told.replica_nodes] == [second, third, first]
            ),
            "clients learn of all replicas",
        )
    cluster.wait_until_moved("announced", [second, third])
    assert cluster.list_reassignments(("announced", 0)) == {}
    assert cluster.znodes.leader("announced", 0) == second


def test_only_what_runs_is_listed(cluster: ConformanceCluster) -> None:
    first, second, third = cluster.order
    cluster.serve_topic("listed", [[first, second], [first, second]])
    with cluster.pause_broker(third):
        cluster.reassign(("listed", 1, [first, third]))
        wanted = {("listed", 1): ([first, third, second], [third], [second])}
        assert cluster.list_reassignments() == wanted
        assert cluster.list_reassignments(("listed", 1), ("listed", 0), ("ghost", 0)) == wanted
        assert cluster.list_reassignments(("listed", 0)) == {}
    cluster.wait_until_moved("listed", [first, third], partition=1)


@pytest.mark.parametrize("target", [[2, 1], [1], [2], [1, 2, 3], [3]], ids=str)
def test_a_partition_moves_wherever_it_is_asked_to(cluster: ConformanceCluster, target: list[int]) -> None:
    """Another order, fewer replicas with and without the leader, more of them, other ones."""
    topic = f"anywhere-{'-'.join(map(str, target))}"
    cluster.serve_topic(topic, [[1, 2]])
    cluster.znodes.reassign({(topic, 0): target})
    cluster.wait_until_moved(topic, target)
    assert cluster.znodes.leader(topic, 0) == (1 if 1 in target else target[0]), "a leader that stays goes on"
    cluster.wait_until_served(topic)
    cluster.wait_until_only_replicas_have_logs(topic)


# Cancellation and replacement


def test_a_reassignment_that_is_cancelled_leaves_no_trace(cluster: ConformanceCluster) -> None:
    first, second, third = cluster.order
    cluster.serve_topic("taken-back", [[first, second]])
    with cluster.pause_broker(third):
        assert cluster.reassign(("taken-back", 0, [third, second])) == [ErrorCode.none]
        assert cluster.reassign(("taken-back", 0, None)) == [ErrorCode.none]
        cluster.wait(lambda: cluster.list_reassignments(("taken-back", 0)) == {}, "nothing runs any more")
        assert cluster.znodes.leader("taken-back", 0) == first
        assert sorted(cluster.znodes.read_assignment("taken-back", 0)) == sorted([first, second])
    cluster.wait_until_only_replicas_have_logs("taken-back")
    cluster.wait_until_served("taken-back")


@ours_only
def test_a_reassignment_that_is_cancelled_leaves_the_order_of_the_replicas(cluster: ConformanceCluster) -> None:
    """Kafka's controller forgets it: the remaining replicas then have the order of the target."""
    first, second, third = cluster.order
    cluster.serve_topic("in-its-order", [[first, second]])
    with cluster.pause_broker(third):
        cluster.reassign(("in-its-order", 0, [second, third]))
        cluster.reassign(("in-its-order", 0, None))
        cluster.wait(lambda: cluster.list_reassignments() == {}, "nothing runs any more")
        assert cluster.znodes.read_assignment("in-its-order", 0) == [first, second]
    cluster.wait_until_only_replicas_have_logs("in-its-order")


def test_another_target_replaces_the_running_one(cluster: ConformanceCluster) -> None:
    first, second, third = cluster.order
    cluster.serve_topic("replaced", [[first]])
    with cluster.pause_broker(third):
        assert cluster.reassign(("replaced", 0, [third])) == [ErrorCode.none]
        assert cluster.reassign(("replaced", 0, [second])) == [ErrorCode.none]
        cluster.wait_until_moved("replaced", [second])
        assert cluster.znodes.leader("replaced", 0) == second
    cluster.wait_until_only_replicas_have_logs("replaced")


def test_a_request_supplants_what_zookeeper_asks_for_the_same_partition(cluster: ConformanceCluster) -> None:
    first, second, third = cluster.order
    cluster.serve_topic("supplanted", [[first]])
    with cluster.pause_broker(third):
        cluster.znodes.reassign({("supplanted", 0): [third]})
        wait_until_reassigning(cluster.znodes, "supplanted")
        assert cluster.reassign(("supplanted", 0, [second])) == [ErrorCode.none]
        cluster.wait_until_moved("supplanted", [second])


@ours_only
def test_another_target_in_the_same_znode_replaces_the_running_one(cluster: ConformanceCluster) -> None:
    """Kafka's controller watches for its creation only (KAFKA-9478)."""
    first, second, third = cluster.order
    cluster.serve_topic("rewritten", [[first]])
    with cluster.pause_broker(third):
        cluster.znodes.reassign({("rewritten", 0): [third]})
        wait_until_reassigning(cluster.znodes, "rewritten")
        cluster.znodes.rewrite_reassignment({("rewritten", 0): [second]})
        cluster.wait_until_moved("rewritten", [second])
    cluster.wait_until_only_replicas_have_logs("rewritten")


def test_a_topic_that_vanishes_takes_its_reassignment_with_it(cluster: ConformanceCluster) -> None:
    first, second, third = cluster.order
    cluster.serve_topic("vanishing", [[first]])
    cluster.serve_topic("staying", [[first]])
    with cluster.pause_broker(third):
        cluster.reassign(("vanishing", 0, [third]))
        cluster.znodes.client.delete("/brokers/topics/vanishing", recursive=True)
        cluster.wait(lambda: cluster.list_reassignments() == {}, "nothing runs any more")
    assert cluster.reassign(("staying", 0, [second])) == [ErrorCode.none]
    cluster.wait_until_moved("staying", [second])
