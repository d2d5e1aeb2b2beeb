"""The procedures of the specification on unmodified brokers, seen in ZooKeeper and by clients."""

from collections.abc import Iterator

from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_moved
from tests.real.controller.clusters import OurCluster

ACKED_BY_TWO = {"min.insync.replicas": "2"}


def test_a_reassignment_passes_through_the_rows_of_the_specification(our_cluster: OurCluster) -> None:
    """The controller stops before each write, so that no intermediate state in ZooKeeper is missed."""
    znodes, controller = our_cluster.znodes, our_cluster.controller
    our_cluster.serve_topic("table", [[1, 2, 3]], ACKED_BY_TWO)
    controller.kill(ends_session=False)
    controller.start_stepping("/brokers/topics/table")
    with nothing_lost(our_cluster.kafka.bootstrap_servers, "table"):
        znodes.reassign({("table", 0): [4, 5, 6]})
        rows = list(rows_of(our_cluster, "table"))
        controller.restart_whole()
        wait_until_moved(our_cluster.znodes, "table", [4, 5, 6])
    old, new = [1, 2, 3], [4, 5, 6]
    both = old + new
    assert [row for row in rows if row[2] in (old, both, new)] == [
        (old, 1, old),
        (both, 1, old),
        (both, 1, both),
        (both, 4, both),
        (both, 4, new),
        (new, 4, new),
    ]
    assert all((assigned, leader) == (both, 1) for assigned, leader, isr in rows if isr not in (old, both, new)), rows
    our_cluster.wait_until_no_stray_replicas("table", 0)


def rows_of(cluster: OurCluster, topic: str) -> Iterator[tuple[list[int], int, list[int]]]:
    """Yield AR, leader and ISR at each stop of the controller if they changed, and at the end of the reassignment."""
    znodes, controller = cluster.znodes, cluster.controller
    former = None
    while True:
        wait_until(lambda: controller.process.is_stopped or not znodes.has_reassignments(), "the next write")
        row = (sorted(znodes.read_assignment(topic, 0)), znodes.leader(topic, 0), znodes.isr(topic, 0))
        if row != former:
            yield row
        if not znodes.has_reassignments():
            return
        former = row
        controller.resume()
