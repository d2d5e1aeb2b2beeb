"""Single partitions are added and moved through znodes below `/admin`, as in seed 004, with stock brokers.

Kafka's own controller ignores these znodes.
"""

from devcluster.clients.znodes import PARTITIONS_ADD, PARTITIONS_REASSIGNED, PARTITIONS_REMOVE
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_logged
from tests.real.conformance.clusters import ConformanceCluster
from tests.real.conformance.set_ups import ours_only


@ours_only
def test_partitions_are_added_one_by_one_and_served(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("grown-singly", [[1, 2, 3]])
    first = cluster.znodes.ask_of_partition(PARTITIONS_ADD, "grown-singly", 1, [3, 1])
    cluster.wait_until_gone(first)
    cluster.wait_until_gone(cluster.znodes.ask_of_partition(PARTITIONS_ADD, "grown-singly", 2, [2]))
    cluster.wait_until_served("grown-singly", 3)
    assert cluster.znodes.partitions("grown-singly") == {0: [1, 2, 3], 1: [3, 1], 2: [2]}
    assert [cluster.read_state("grown-singly", partition).leader for partition in (1, 2)] == [3, 2]
    for partition in (1, 2):
        cluster.wait_until_everybody_knows("grown-singly", partition)
    assert not cluster.exists(f"{PARTITIONS_ADD}/grown-singly")


@ours_only
def test_what_cannot_be_added_is_refused_and_the_topic_stays_as_it_is(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("not-grown", [[1, 2, 3]])
    before = cluster.znodes.read("/brokers/topics/not-grown")
    for partition, replicas in ((0, [2]), (2, [1]), (1, [99]), (1, [])):
        cluster.wait_until_gone(cluster.znodes.ask_of_partition(PARTITIONS_ADD, "not-grown", partition, replicas))
    assert cluster.znodes.read("/brokers/topics/not-grown") == before
    assert cluster.own_controller is not None
    for words in ("there is such a partition already", "partition 1 is the next", "broker 99 is not registered"):
        wait_until_logged(cluster.own_controller.process, words)


@ours_only
def test_a_partition_moves_by_a_request_of_its_own_under_load(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("moved-singly", [[1, 2]])
    with nothing_lost(cluster.bootstrap, "moved-singly", more_than=200, identity=cluster.identity):
        path = cluster.znodes.ask_of_partition(PARTITIONS_REASSIGNED, "moved-singly", 0, [3, 2])
        cluster.wait_until_gone(path)
        assert cluster.znodes.read_assignment("moved-singly", 0) == [3, 2]
    cluster.wait_until_only_replicas_have_logs("moved-singly")
    assert not cluster.znodes.is_reassigning("moved-singly")


@ours_only
def test_requests_of_single_partitions_wait_for_a_controller(cluster: ConformanceCluster) -> None:
    own = cluster.own_controller
    assert own is not None
    cluster.serve_topic("asked-meanwhile", [[1, 2]])
    own.kill(ends_session=False)  # nobody may take the role
    added = cluster.znodes.ask_of_partition(PARTITIONS_ADD, "asked-meanwhile", 1, [2, 3])
    moved = cluster.znodes.ask_of_partition(PARTITIONS_REASSIGNED, "asked-meanwhile", 0, [1, 3])
    own.start()
    cluster.wait_until_gone(added, moved)
    cluster.wait_until_served("asked-meanwhile", 2)
    assert cluster.znodes.partitions("asked-meanwhile") == {0: [1, 3], 1: [2, 3]}


@ours_only
def test_no_partition_is_removed_where_brokers_are_stock_ones(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("not-shrunk", [[1, 2], [2, 3]])
    cluster.wait_until_gone(cluster.znodes.ask_of_partition(PARTITIONS_REMOVE, "not-shrunk", 1))
    assert cluster.znodes.is_served("not-shrunk", [0, 1])
    assert cluster.own_controller is not None
    wait_until_logged(
        cluster.own_controller.process,
        "stock brokers cannot remove a single partition, and 1, 2, 3 are stock brokers",
    )
