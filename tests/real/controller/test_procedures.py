"""The procedures of the specification on unmodified brokers, seen in ZooKeeper and by clients."""

import threading

from devcluster.load import AckedProducer, lost, read_back
from devcluster.processes import wait_until
from tests.real.controller.clusters import OurCluster

ACKED_BY_TWO = {"min.insync.replicas": "2"}


def test_a_reassignment_passes_through_the_rows_of_the_specification(our_cluster: OurCluster) -> None:
    znodes = our_cluster.znodes
    our_cluster.serve_topic("table", [[1, 2, 3]], ACKED_BY_TWO)
    rows: list[tuple[list[int], int, list[int]]] = []
    finished = threading.Event()

    def note_rows() -> None:
        while not finished.is_set():
            state = znodes.state("table", 0)
            row = (sorted(znodes.assigned("table", 0)), state["leader"], sorted(state["isr"]))
            if row not in rows:
                rows.append(row)

    watcher = threading.Thread(target=note_rows)
    watcher.start()
    try:
        with AckedProducer(our_cluster.kafka.bootstrap_servers, "table") as producer:
            wait_until(lambda: producer.acknowledged_count > 0, "the first acknowledgement", deadline_s=30)
            znodes.reassign({("table", 0): [4, 5, 6]})
            our_cluster.wait_until_moved("table", 0, [4, 5, 6])
    finally:
        finished.set()
        watcher.join()
    both = [1, 2, 3, 4, 5, 6]
    assert rows[0] == ([1, 2, 3], 1, [1, 2, 3])
    assert (both, 1, [1, 2, 3]) in rows
    assert rows[-1] == ([4, 5, 6], 4, [4, 5, 6])
    old_leader_rows = [index for index, (_, leader, _) in enumerate(rows) if leader == 1]
    assert max(old_leader_rows) < min(index for index, (_, leader, _) in enumerate(rows) if leader == 4)
    assert all(set(isr) >= {4, 5, 6} for _, leader, isr in rows if leader == 4), "the leader moves when RAR is in sync"
    assert all(assigned == both for assigned, _, isr in rows[1:-1] if set(isr) != {4, 5, 6}), "AR is written last"
    assert lost(producer.stop().acknowledged, read_back(our_cluster.kafka.bootstrap_servers, "table")) == []
    our_cluster.wait_until_no_stray_replicas("table", 0)
