"""A reassignment that was requested by request is continued by any controller, including Kafka's own."""

import pytest
from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from devcluster.clients.requests import send_request
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_controlled_by, wait_until_moved
from tests.real.controller.clusters import OurCluster
from tests.real.controller.test_throttles import (
    A_LITTLE,
    FAST,
    SLOW,
    bytes_on,
    fill,
    throttle,
    wait_until_nothing_is_left,
)

pytestmark = pytest.mark.timeout(400)
ORIGINS = "kontroller_origin_replicas"


def ask(cluster: OurCluster, topic: str, target: list[int] | None) -> None:
    entry = ReassignablePartition(
        partition_index=i32(0), replicas=None if target is None else tuple(WireBrokerId(number) for number in target)
    )
    request = AlterPartitionReassignmentsRequest(
        topics=(ReassignableTopic(name=WireTopicName(topic), partitions=(entry,)),)
    )
    response = send_request(("127.0.0.1", cluster.controller.port), request)
    assert response.responses[0].partitions[0].error_code is ErrorCode.none


def begin_slowly(cluster: OurCluster, topic: str) -> None:
    """Move 1 and 2 to 2 and 3, so that the znode alone does not have the order of 1 and 2."""
    cluster.serve_topic(topic, [[1, 2]])
    fill(cluster, topic)
    throttle(cluster, topic, 1, 3, SLOW)
    ask(cluster, topic, [2, 3])
    wait_until(lambda: bytes_on(cluster, topic, 3) >= A_LITTLE, "the move has begun")
    assert cluster.znodes.read(f"/brokers/topics/{topic}")[ORIGINS] == {"0": [1, 2]}


def test_what_is_cancelled_after_the_controller_was_killed_has_its_order_again(our_cluster: OurCluster) -> None:
    begin_slowly(our_cluster, "reordered")
    our_cluster.controller.restart_whole()
    ask(our_cluster, "reordered", None)
    assert our_cluster.znodes.read_assignment("reordered", 0) == [1, 2]
    assert ORIGINS not in our_cluster.znodes.read("/brokers/topics/reordered")
    wait_until_nothing_is_left(our_cluster, "reordered")
    our_cluster.wait_until_no_stray_replicas("reordered", 0)


def test_kafkas_own_controller_goes_on_with_what_ours_began(our_cluster: OurCluster) -> None:
    begin_slowly(our_cluster, "lent")
    our_cluster.controller.kill()
    wait_until_controlled_by(our_cluster.znodes, *our_cluster.kafka.brokers)
    throttle(our_cluster, "lent", 1, 3, FAST)
    wait_until_moved(our_cluster.znodes, "lent", [2, 3])
    our_cluster.controller.restart_whole()
    wait_until_nothing_is_left(our_cluster, "lent")
    our_cluster.wait_until_no_stray_replicas("lent", 0)
    our_cluster.wait_until_served("lent")
