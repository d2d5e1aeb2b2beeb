"""What people and tools write wrongly: reported, removed or skipped, and the next request is served."""

import json
import secrets
import socket
import struct

import pytest

from devcluster.processes import wait_until
from devcluster.znodes import PREFERRED_ELECTION, REASSIGN_PARTITIONS
from tests.real.controller.clusters import OurCluster


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"{not json", id="not JSON"),
        pytest.param(b"", id="empty"),
        pytest.param(b"[1, 2]", id="not an object"),
        pytest.param(b'{"version":1,"partitions":"all"}', id="partitions are no list"),
        pytest.param(
            b'{"version":1,"partitions":[{"topic":"ghost","partition":0,"replicas":[1]}]}', id="unknown topic"
        ),
        pytest.param(
            b'{"version":1,"partitions":[{"topic":"sound","partition":9,"replicas":[1]}]}', id="unknown partition"
        ),
        pytest.param(
            b'{"version":1,"partitions":[{"topic":"sound","partition":0,"replicas":[1,1]}]}', id="duplicate replicas"
        ),
        pytest.param(b'{"version":1,"partitions":[{"topic":"sound","partition":0,"replicas":[]}]}', id="no replicas"),
        pytest.param(
            b'{"version":1,"partitions":[{"topic":"sound","partition":0,"replicas":[1,99]}]}', id="unknown broker"
        ),
        pytest.param(
            b'{"version":1,"partitions":[{"topic":"sound","partition":0,"replicas":[1000]}]}', id="the controller"
        ),
    ],
)
def test_an_impossible_reassignment_is_removed_and_the_next_one_is_done(
    our_cluster: OurCluster, content: bytes
) -> None:
    znodes = our_cluster.znodes
    if znodes.read("/brokers/topics/sound") is None:
        our_cluster.serve_topic("sound", [[1, 2]])
    before = znodes.assigned("sound", 0)
    znodes.client.create(REASSIGN_PARTITIONS, content)
    wait_until(lambda: not znodes.has_reassignments(), "the request is removed", deadline_s=30)
    assert znodes.assigned("sound", 0) == before
    target = [3, 4] if before == [1, 2] else [1, 2]
    znodes.reassign({("sound", 0): target})
    our_cluster.wait_until_moved("sound", 0, target)


def test_the_possible_part_of_a_reassignment_is_done(our_cluster: OurCluster) -> None:
    our_cluster.serve_topic("partly", [[1, 2]])
    our_cluster.znodes.reassign({("partly", 0): [2, 3], ("partly", 7): [1, 2], ("nowhere", 0): [1, 2]})
    our_cluster.wait_until_moved("partly", 0, [2, 3])


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"{not json", id="not JSON"),
        pytest.param(b'{"version":1,"partitions":[{"topic":"ghost","partition":0}]}', id="unknown topic"),
        pytest.param(b'{"version":1,"partitions":[{"topic":"ghost"}]}', id="no partition"),
    ],
)
def test_an_impossible_election_is_removed_and_the_next_one_is_held(our_cluster: OurCluster, content: bytes) -> None:
    znodes = our_cluster.znodes
    znodes.client.create(PREFERRED_ELECTION, content)
    wait_until(lambda: not znodes.has_election(), "the request is removed", deadline_s=30)
    znodes.elect_preferred([("ghost", 0)])
    wait_until(lambda: not znodes.has_election(), "the next request is removed as well", deadline_s=30)


def test_a_reassignment_waits_for_a_target_that_dies_and_completes_when_it_returns(our_cluster: OurCluster) -> None:
    znodes = our_cluster.znodes
    our_cluster.serve_topic("interrupted", [[1, 2]])
    our_cluster.kafka.broker(6).pause()
    try:
        znodes.reassign({("interrupted", 0): [5, 6]})
        wait_until(lambda: len(znodes.assigned("interrupted", 0)) == 4, "it has begun", deadline_s=30)
    finally:
        our_cluster.kafka.broker(6).kill()
    wait_until(lambda: 6 not in our_cluster.live_brokers(), "6 is gone", deadline_s=30)
    assert sorted(znodes.assigned("interrupted", 0)) == [1, 2, 5, 6]
    assert znodes.leader("interrupted", 0) == 1
    our_cluster.kafka.broker(6).start()
    our_cluster.wait_until_moved("interrupted", 0, [5, 6])


def test_a_reassignment_that_cannot_end_is_replaced_by_writing_its_request_again(our_cluster: OurCluster) -> None:
    znodes = our_cluster.znodes
    our_cluster.serve_topic("replaced", [[1, 2]])
    our_cluster.kafka.broker(6).pause()
    try:
        znodes.reassign({("replaced", 0): [5, 6]})
        wait_until(lambda: len(znodes.assigned("replaced", 0)) == 4, "it has begun", deadline_s=30)
        znodes.rewrite_reassignment({("replaced", 0): [3, 4]})
        our_cluster.wait_until_moved("replaced", 0, [3, 4])
    finally:
        our_cluster.kafka.broker(6).resume()
    our_cluster.wait_until_no_stray_replicas("replaced", 0)


def test_a_topic_that_vanishes_takes_its_reassignment_with_it(our_cluster: OurCluster) -> None:
    znodes = our_cluster.znodes
    our_cluster.serve_topic("vanishing", [[1, 2]])
    our_cluster.serve_topic("staying", [[1, 2]])
    our_cluster.kafka.broker(6).pause()
    try:
        znodes.reassign({("vanishing", 0): [3, 6]})
        wait_until(lambda: len(znodes.assigned("vanishing", 0)) == 4, "it has begun", deadline_s=30)
        znodes.client.delete("/brokers/topics/vanishing", recursive=True)
        wait_until(lambda: not znodes.has_reassignments(), "its request is removed", deadline_s=30)
    finally:
        our_cluster.kafka.broker(6).resume()
    znodes.reassign({("staying", 0): [2, 3]})
    our_cluster.wait_until_moved("staying", 0, [2, 3])


def test_an_unreadable_topic_is_left_alone_and_served_when_it_is_repaired(our_cluster: OurCluster) -> None:
    znodes = our_cluster.znodes
    znodes.client.create("/brokers/topics/garbled", b"{not json")
    our_cluster.wait_until_logged("garbled")
    our_cluster.serve_topic("readable", [[1, 2]])
    znodes.client.set("/brokers/topics/garbled", json.dumps({"version": 1, "partitions": {"0": [3, 4]}}).encode())
    our_cluster.wait_until_served("garbled", range(1))
    assert znodes.read("/brokers/topics/garbled")["topic_id"], "a topic without an id is given one"


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(struct.pack(">i", 2**31 - 1) + b"x" * 64, id="too long"),
        pytest.param(struct.pack(">i", -5), id="negative length"),
        pytest.param(struct.pack(">i", 100) + b"cut", id="cut"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n", id="HTTP"),
        pytest.param(struct.pack(">ihhi", 10, 56, 99, 1) + b"\xff\xff", id="an unknown version of an API of ours"),
        pytest.param(struct.pack(">ihhi", 10, 4, 7, 1) + b"\xff\xff", id="a control request"),
        pytest.param(struct.pack(">i", 64) + secrets.token_bytes(64), id="random bytes"),
    ],
)
def test_a_frame_that_is_not_kafkas_closes_its_own_connection_only(our_cluster: OurCluster, frame: bytes) -> None:
    with socket.create_connection(("127.0.0.1", our_cluster.controller.port), timeout=10) as connection:
        connection.sendall(frame)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    topic = f"after-{secrets.token_hex(4)}"
    our_cluster.serve_topic(topic, [[1, 2]])
    assert our_cluster.znodes.controller() == our_cluster.controller.controller_id
