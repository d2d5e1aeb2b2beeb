"""The procedures of the specification on unmodified brokers, seen in ZooKeeper and by clients."""

import threading

from devcluster.load import AckedProducer, lost, read_back
from devcluster.processes import wait_until
from tests.real.controller.clusters import OurCluster

ACKED_BY_TWO = {"min.insync.replicas": "2"}


def test_a_new_topic_gets_the_first_replica_as_leader_and_all_as_isr(our_cluster: OurCluster) -> None:
    our_cluster.znodes.create_topic("fresh", [[3, 1, 2], [5, 4]])
    our_cluster.wait_until_served("fresh", range(2))
    assert [our_cluster.znodes.leader("fresh", partition) for partition in range(2)] == [3, 5]


def test_added_partitions_are_served(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("growing", [[1, 2]])
    our_cluster.znodes.add_partitions("growing", {1: [2, 3], 2: [3, 4]})
    our_cluster.wait_until_served("growing", range(3))


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


def test_a_broker_that_stops_in_good_order_hands_over_its_leaderships_first(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("handed-over", [[2, 3, 4], [3, 2, 4]], ACKED_BY_TWO)
    our_cluster.kafka.broker(2).stop()
    assert our_cluster.znodes.leader("handed-over", 0) == 3
    assert our_cluster.znodes.isr("handed-over", 0) == [3, 4]
    assert our_cluster.znodes.isr("handed-over", 1) == [3, 4]
    assert "Controlled shutdown request returned successfully" in our_cluster.broker_log(2)
    our_cluster.kafka.broker(2).start()
    our_cluster.wait_until_served("handed-over", range(2))


def test_a_killed_broker_is_replaced_by_a_replica_in_sync_and_returns_as_follower(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("bereft", [[5, 6, 1]], ACKED_BY_TWO)
    with AckedProducer(our_cluster.kafka.bootstrap_servers, "bereft") as producer:
        wait_until(lambda: producer.acknowledged_count > 0, "the first acknowledgement", deadline_s=30)
        our_cluster.kafka.broker(5).kill()
        wait_until(lambda: our_cluster.znodes.leader("bereft", 0) == 6, "6 leads", deadline_s=30)
        assert our_cluster.znodes.isr("bereft", 0) == [1, 6]
        our_cluster.kafka.broker(5).start()
        our_cluster.wait_until_served("bereft", range(1))
        assert our_cluster.znodes.leader("bereft", 0) == 6
    assert lost(producer.stop().acknowledged, read_back(our_cluster.kafka.bootstrap_servers, "bereft")) == []


def test_the_last_in_sync_replica_is_waited_for_and_nothing_is_elected_uncleanly(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("patient", [[4, 5]])
    our_cluster.kafka.broker(5).stop()
    wait_until(lambda: our_cluster.znodes.isr("patient", 0) == [4], "4 alone is in sync", deadline_s=30)
    our_cluster.kafka.broker(4).kill()
    wait_until(lambda: our_cluster.znodes.leader("patient", 0) == -1, "there is no leader", deadline_s=30)
    our_cluster.kafka.broker(5).start()
    assert our_cluster.znodes.isr("patient", 0) == [4]
    assert our_cluster.znodes.leader("patient", 0) == -1
    our_cluster.kafka.broker(4).start()
    our_cluster.wait_until_served("patient", range(1))
    assert our_cluster.znodes.leader("patient", 0) == 4


def test_a_topic_that_allows_it_gets_an_unclean_leader(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("careless", [[4, 5]], {"unclean.leader.election.enable": "true"})
    our_cluster.kafka.broker(5).stop()
    wait_until(lambda: our_cluster.znodes.isr("careless", 0) == [4], "4 alone is in sync", deadline_s=30)
    our_cluster.kafka.broker(4).kill()
    our_cluster.kafka.broker(5).start()
    wait_until(lambda: our_cluster.znodes.leader("careless", 0) == 5, "5 leads uncleanly", deadline_s=30)
    assert our_cluster.znodes.state("careless", 0)["leader_recovery_state"] == 1
    our_cluster.kafka.broker(4).start()
    our_cluster.wait_until_served("careless", range(1))
    assert "leader_recovery_state" not in our_cluster.znodes.state("careless", 0), (
        "the leader reported that it recovered"
    )


def test_preferred_replicas_get_their_leaderships_back(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("fair", [[1, 2], [1, 3], [2, 1]])
    our_cluster.kafka.broker(1).restart()
    our_cluster.wait_until_served("fair", range(3))
    assert our_cluster.znodes.leader("fair", 0) == 2
    our_cluster.znodes.elect_preferred([("fair", partition) for partition in range(3)])
    wait_until(
        lambda: [our_cluster.znodes.leader("fair", partition) for partition in range(3)] == [1, 1, 2],
        "the preferred replicas lead",
        deadline_s=30,
    )
    wait_until(lambda: not our_cluster.znodes.has_election(), "the request is removed", deadline_s=30)


def test_a_deleted_topic_leaves_nothing_and_may_be_created_again(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("phoenix", [[1, 2, 3]])
    our_cluster.znodes.mark_for_deletion("phoenix")
    wait_until(lambda: our_cluster.znodes.read("/brokers/topics/phoenix") is None, "the topic is gone", deadline_s=30)
    wait_until(lambda: not our_cluster.client_exists("/admin/delete_topics/phoenix"), "its mark is gone", deadline_s=30)
    our_cluster.serve_topic("phoenix", [[3, 2, 1]])
    assert our_cluster.znodes.leader("phoenix", 0) == 3


def test_a_topic_is_deleted_on_a_broker_that_was_down_when_it_returns(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("absent", [[1, 6]])
    our_cluster.kafka.broker(6).stop()
    our_cluster.znodes.mark_for_deletion("absent")
    our_cluster.wait_until_logged('"topic":"absent","replicas":2')
    assert our_cluster.znodes.read("/brokers/topics/absent") is not None
    our_cluster.kafka.broker(6).start()
    wait_until(lambda: our_cluster.znodes.read("/brokers/topics/absent") is None, "the topic is gone", deadline_s=30)
    assert not (our_cluster.kafka.broker(6).log_folder / "absent-0").exists()
