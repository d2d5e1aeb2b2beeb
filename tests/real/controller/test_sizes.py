"""Znodes near ZooKeeper's default size limit: a single write reaches it, and none ends a term."""

import base64
import json
import uuid

import pytest

from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import wait_until_logged, wait_until_moved
from tests.real.controller.clusters import OurCluster

pytestmark = [pytest.mark.timeout(600)]

NOBODY = 1_000_000
"""The first of many nonexistent brokers: their ids make a topic's znode large without any log on a disk."""


def create_topic(our_cluster: OurCluster, name: str, ids: int) -> None:
    """Create a partition that is served, and two more with this many replicas each; in Kafka's JSON, without spaces."""
    replicas = [[1, 2], *[list(range(NOBODY, NOBODY + ids))] * 2]
    content = {
        "version": 3,
        "topic_id": base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode(),
        "partitions": dict(enumerate(replicas)),
        "adding_replicas": {},
        "removing_replicas": {},
    }
    data = json.dumps(content, separators=(",", ":")).encode()
    our_cluster.znodes.client.create(f"/brokers/topics/{name}", data)
    our_cluster.wait_until_served(name)


def assert_serves(our_cluster: OurCluster, controller_epoch: int, name: str) -> None:
    """Assert that a new topic gets its leader, under the epoch from before."""
    our_cluster.serve_topic(name, [[1, 2]])
    assert our_cluster.znodes.read("/controller_epoch") == controller_epoch


def test_a_topic_near_the_limit_is_reassigned_and_one_that_would_be_above_is_refused(our_cluster: OurCluster) -> None:
    znodes, before = our_cluster.znodes, our_cluster.znodes.read("/controller_epoch")
    try:
        create_topic(our_cluster, "near", 61_000)
        znodes.reassign({("near", 0): [3, 4]})
        wait_until_moved(our_cluster.znodes, "near", [3, 4])
        create_topic(our_cluster, "above", 64_500)
        znodes.reassign({("above", 0): [3, 4], ("near", 0): [1, 2]})
        wait_until_moved(our_cluster.znodes, "near", [1, 2])
        assert znodes.read_assignment("above", 0) == [1, 2]
        wait_until_logged(our_cluster.controller.process, "reassign fewer partitions of the topic at a time")
        assert_serves(our_cluster, before, "after-large-topics")
    finally:
        for topic in ("near", "above"):
            if znodes.client.exists(f"/brokers/topics/{topic}"):
                znodes.client.delete(f"/brokers/topics/{topic}", recursive=True)


def test_a_plan_near_the_limit_is_taken_up_and_what_cannot_be_done_taken_out(our_cluster: OurCluster) -> None:
    znodes, before = our_cluster.znodes, our_cluster.znodes.read("/controller_epoch")
    our_cluster.serve_topic("planned", [[1, 2], [2, 3]])
    our_cluster.kafka.broker(6).pause()
    try:
        absent: dict[tuple[str, int], list[int]] = {("absent-" + "x" * 200, number): [1, 2] for number in range(3_600)}
        znodes.reassign({("planned", 0): [5, 6], **absent, ("planned", 1): [4, 5]})
        wait_until(lambda: list(znodes.reassignments()) == [("planned", 0)], "all but one is out of it")
        assert_serves(our_cluster, before, "after-a-large-plan")
    finally:
        our_cluster.kafka.broker(6).resume()
    wait_until_moved(our_cluster.znodes, "planned", [5, 6])
    assert znodes.read_assignment("planned", 1) == [4, 5]
