"""TopicDeletion: a topic is marked, its replicas are deleted by their brokers, and then its znodes go."""

from controller_core.wire.messages import ErrorCode
from devcluster.clients.znodes import REASSIGN_PARTITIONS
from devcluster.waiting.vocabulary import wait_until_reassigning
from tests.real.conformance.clusters import PREFERRED, ConformanceCluster
from tests.real.conformance.set_ups import ours_only

DELETED = ("/brokers/topics/{}", "/config/topics/{}", "/admin/delete_topics/{}")


def wait_until_deleted(cluster: ConformanceCluster, topic: str) -> None:
    cluster.wait_until_gone(*(path.format(topic) for path in DELETED))


def test_a_deleted_topic_leaves_no_znode_no_log_and_no_metadata(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("deleted", [[1, 2, 3], [2, 3]])
    cluster.znodes.mark_for_deletion("deleted")
    wait_until_deleted(cluster, "deleted")
    for partition in range(2):
        cluster.wait_until_only_replicas_have_logs("deleted", partition)
    for broker in cluster.znodes.live_brokers():
        assert cluster.metadata_of(broker, "deleted").error_code is ErrorCode.unknown_topic_or_partition


def test_a_topic_of_the_same_name_is_another_one(cluster: ConformanceCluster) -> None:
    cluster.serve_topic("phoenix", [[1, 2, 3]])
    former = cluster.topic_id("phoenix")
    cluster.znodes.mark_for_deletion("phoenix")
    wait_until_deleted(cluster, "phoenix")
    cluster.serve_topic("phoenix", [[3, 2, 1]])
    cluster.wait_until_everybody_knows("phoenix")
    assert (cluster.read_state("phoenix").leader, cluster.read_state("phoenix").leader_epoch) == (3, 0)
    for broker in cluster.znodes.live_brokers():
        assert cluster.metadata_of(broker, "phoenix").topic_id == cluster.topic_id("phoenix") != former


def test_many_topics_are_deleted_together(cluster: ConformanceCluster) -> None:
    topics = [f"deleted-{number}" for number in range(10)]
    for topic in topics:
        cluster.serve_topic(topic, [[1, 2], [2, 3]])
    for topic in topics:
        cluster.znodes.mark_for_deletion(topic)
    for topic in topics:
        wait_until_deleted(cluster, topic)


def test_the_mark_of_a_topic_that_is_not_there_is_removed(cluster: ConformanceCluster) -> None:
    cluster.znodes.mark_for_deletion("never-was")
    cluster.wait_until_gone("/admin/delete_topics/never-was")


@ours_only
def test_a_topic_that_lost_a_state_is_deleted(cluster: ConformanceCluster) -> None:
    """Kafka's controller fails to remove replicas from a missing ISR, and waits until it is restarted."""
    cluster.serve_topic("half-there", [[1, 2]])
    cluster.znodes.client.delete("/brokers/topics/half-there/partitions/0/state")
    cluster.znodes.mark_for_deletion("half-there")
    wait_until_deleted(cluster, "half-there")


def test_a_topic_with_a_replica_on_a_broker_that_hangs_is_deleted_when_it_answers(cluster: ConformanceCluster) -> None:
    """Until then no broker lists it for clients, its partitions cannot be moved, and nobody can be elected."""
    first, second, third = cluster.order
    cluster.serve_topic("hanging", [[first, third]])
    with cluster.pause_broker(third):
        cluster.znodes.mark_for_deletion("hanging")
        cluster.wait_until_unlisted("hanging", first, second)
        assert cluster.exists("/admin/delete_topics/hanging")
        assert cluster.exists("/brokers/topics/hanging")
        assert cluster.reassign(("hanging", 0, [first, second])) == [ErrorCode.unknown_topic_or_partition]
        assert cluster.elect(PREFERRED, ("hanging", 0))["hanging", 0] is ErrorCode.invalid_topic_exception
    wait_until_deleted(cluster, "hanging")


def test_a_deletion_does_not_wait_for_a_reassignment_which_cannot_be_cancelled_then(
    cluster: ConformanceCluster,
) -> None:
    """Kafka's controller means to wait, but holds back only topics whose deletion was queued before."""
    first, second, third = cluster.order
    cluster.serve_topic("moved-first", [[first, second]])
    with cluster.pause_broker(third):
        assert cluster.reassign(("moved-first", 0, [third, first])) == [ErrorCode.none]
        cluster.znodes.mark_for_deletion("moved-first")
        cluster.wait_until_unlisted("moved-first", second)
        cluster.wait(lambda: not {first, second} & cluster.brokers_with_a_log("moved-first"), "others delete it")
        assert cluster.reassign(("moved-first", 0, None)) == [ErrorCode.unknown_topic_or_partition]
    wait_until_deleted(cluster, "moved-first")
    cluster.wait_until_only_replicas_have_logs("moved-first")


@ours_only
def test_a_request_for_a_reassignment_goes_with_its_topic(cluster: ConformanceCluster) -> None:
    """Kafka's controller leaves the entry in its znode, and starts no other reassignment until somebody removes it."""
    first, second, third = cluster.order
    cluster.serve_topic("asked-by-znode", [[first, second]])
    with cluster.pause_broker(third):
        cluster.znodes.reassign({("asked-by-znode", 0): [third, first]})
        wait_until_reassigning(cluster.znodes, "asked-by-znode")
        cluster.znodes.mark_for_deletion("asked-by-znode")
        cluster.wait_until_gone(REASSIGN_PARTITIONS)
    wait_until_deleted(cluster, "asked-by-znode")


def test_a_reassignment_of_a_topic_that_is_deleted_is_dropped(cluster: ConformanceCluster) -> None:
    first, second, third = cluster.order
    cluster.serve_topic("too-late", [[first, third]])
    with cluster.pause_broker(third):
        cluster.znodes.mark_for_deletion("too-late")
        cluster.wait_until_unlisted("too-late", second)
        cluster.znodes.reassign({("too-late", 0): [first, second]})
        cluster.wait_until_gone(REASSIGN_PARTITIONS)
    wait_until_deleted(cluster, "too-late")


def test_partitions_added_to_a_topic_that_is_deleted_are_taken_out_again(cluster: ConformanceCluster) -> None:
    """Otherwise a later controller would create them (KAFKA-6612)."""
    first, second, third = cluster.order
    cluster.serve_topic("grown-too-late", [[first, third]])
    with cluster.pause_broker(third):
        cluster.znodes.mark_for_deletion("grown-too-late")
        cluster.wait_until_unlisted("grown-too-late", second)
        cluster.znodes.add_partitions("grown-too-late", {1: [first, second]})
        cluster.wait(lambda: set(cluster.znodes.partitions("grown-too-late")) == {0}, "the partition is taken out")
        assert not cluster.exists("/brokers/topics/grown-too-late/partitions/1")
    wait_until_deleted(cluster, "grown-too-late")
