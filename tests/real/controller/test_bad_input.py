"""What people and tools write wrongly: reported, removed or skipped, and the next request is served."""

import json
import secrets
import socket
import struct

import pytest

from devcluster.processes import wait_until
from tests.real.controller.clusters import OurCluster


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
