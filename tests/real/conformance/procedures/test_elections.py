"""ReplicaLeaderElection: preferred and unclean elections, requested in ZooKeeper and by request.

`test_brokers.py` has the elections after a broker's death.
"""

import pytest

from controller_core.wire.messages import ErrorCode
from devcluster.clients.znodes import PREFERRED_ELECTION
from tests.real.conformance.clusters import PREFERRED, UNCLEAN, ConformanceCluster
from tests.real.conformance.set_ups import ours_only


def create_led_by_second(cluster: ConformanceCluster, topic: str) -> None:
    """Create a topic with replicas 1, 2 and 3 that 2 leads, because it was the first replica before a reordering."""
    cluster.serve_topic(topic, [[2, 1, 3]])
    assert cluster.reassign((topic, 0, [1, 2, 3])) == [ErrorCode.none]
    cluster.wait_until_moved(topic, [1, 2, 3])
    assert cluster.znodes.leader(topic, 0) == 2


def test_the_preferred_replica_gets_its_leadership_back_and_the_isr_stays(cluster: ConformanceCluster) -> None:
    create_led_by_second(cluster, "fair")
    before = cluster.read_state("fair")
    cluster.znodes.elect_preferred([("fair", 0)])
    cluster.wait_until_led("fair", 1)
    after = cluster.read_state("fair")
    assert (after.isr, after.leader_epoch, after.partition_epoch) == (
        before.isr, before.leader_epoch + 1, before.partition_epoch + 1,
    )  # fmt: skip
    cluster.wait_until_gone(PREFERRED_ELECTION)
    cluster.wait_until_everybody_knows("fair")


def test_a_partition_that_its_preferred_replica_leads_is_left_alone(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("content", [[1, 2]])
    before = cluster.read_state("content")
    cluster.znodes.elect_preferred([("content", 0)])
    cluster.wait_until_gone(PREFERRED_ELECTION)
    assert cluster.read_state("content") == before


def test_a_preferred_replica_out_of_sync_is_not_elected(cluster: ConformanceCluster) -> None:
    create_led_by_second(cluster, "out-of-sync")
    cluster.leave_in_isr("out-of-sync", [2, 3])
    before = cluster.read_state("out-of-sync")
    assert cluster.elect(PREFERRED, ("out-of-sync", 0)) == {
        ("out-of-sync", 0): ErrorCode.preferred_leader_not_available
    }
    cluster.znodes.elect_preferred([("out-of-sync", 0)])
    cluster.wait_until_gone(PREFERRED_ELECTION)
    assert cluster.read_state("out-of-sync") == before


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"{not json", id="not JSON"),
        pytest.param(b'{"version":1,"partitions":[{"topic":"ghost","partition":0}]}', id="unknown topic"),
        pytest.param(b'{"version":1,"partitions":[]}', id="nothing"),
    ],
)
def test_an_election_that_makes_no_sense_is_removed_and_the_next_one_is_held(
    cluster: ConformanceCluster, content: bytes
) -> None:
    cluster.znodes.client.create(PREFERRED_ELECTION, content)
    cluster.wait_until_gone(PREFERRED_ELECTION)
    topic = f"next-{len(content)}"
    create_led_by_second(cluster, topic)
    cluster.znodes.elect_preferred([("ghost", 0), (topic, 0)])
    cluster.wait_until_led(topic, 1)
    cluster.wait_until_gone(PREFERRED_ELECTION)


@ours_only
def test_an_election_with_an_unreadable_entry_is_removed(cluster: ConformanceCluster) -> None:
    """Kafka's controller fails at it and leaves it there, where it blocks every other request."""
    cluster.znodes.client.create(PREFERRED_ELECTION, b'{"version":1,"partitions":[{"topic":"ghost"}]}')
    cluster.wait_until_gone(PREFERRED_ELECTION)


def test_an_election_by_request_answers_for_each_partition(cluster: ConformanceCluster) -> None:
    create_led_by_second(cluster, "requested")
    cluster.serve_topic("no-need", [[1, 2]])
    assert cluster.elect(PREFERRED, ("requested", 0), ("no-need", 0), ("ghost", 0), ("no-need", 7)) == {
        ("requested", 0): ErrorCode.none,
        ("no-need", 0): ErrorCode.election_not_needed,
        ("ghost", 0): ErrorCode.unknown_topic_or_partition,
        ("no-need", 7): ErrorCode.unknown_topic_or_partition,
    }
    assert cluster.znodes.leader("requested", 0) == 1


def test_an_unclean_election_is_not_held_where_there_is_a_leader(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("clean", [[1, 2]])
    before = cluster.read_state("clean")
    assert cluster.elect(UNCLEAN, ("clean", 0)) == {("clean", 0): ErrorCode.election_not_needed}
    assert cluster.read_state("clean") == before


def test_an_election_for_all_partitions_answers_for_those_that_needed_one(cluster: ConformanceCluster) -> None:
    create_led_by_second(cluster, "among-all")
    # For Kafka's controller all partitions are those in the metadata of its own broker.
    cluster.wait_until_everybody_knows("among-all")
    answers = cluster.elect(PREFERRED)
    assert answers["among-all", 0] is ErrorCode.none
    assert ErrorCode.election_not_needed not in answers.values()
    assert cluster.znodes.leader("among-all", 0) == 1
