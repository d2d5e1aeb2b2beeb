"""Wrong input of users and tools: it is reported, removed or skipped, and the next request is served."""

import json
import secrets
import socket
import struct

import pytest

from devcluster.clients import tools
from devcluster.clients.znodes import REASSIGN_PARTITIONS
from devcluster.waiting.vocabulary import (
    serve_topic,
    wait_until_gone,
    wait_until_logged,
    wait_until_moved,
    wait_until_reassigning,
    wait_until_unregistered,
)
from tests.real.controller.clusters import OurCluster


def test_a_reassignment_waits_for_a_target_that_dies_and_completes_when_it_returns(our_cluster: OurCluster) -> None:
    znodes = our_cluster.znodes
    our_cluster.serve_topic("interrupted", [[1, 2]])
    our_cluster.kafka.broker(6).pause()
    try:
        znodes.reassign({("interrupted", 0): [5, 6]})
        wait_until_reassigning(znodes, "interrupted")
    finally:
        our_cluster.kafka.broker(6).kill()
    wait_until_unregistered(our_cluster.znodes, 6)
    assert sorted(znodes.read_assignment("interrupted", 0)) == [1, 2, 5, 6]
    assert znodes.leader("interrupted", 0) == 1
    our_cluster.kafka.broker(6).start()
    wait_until_moved(our_cluster.znodes, "interrupted", [5, 6])


POISONED_TOPICS = {
    "a replica above int32": {"0": [1, 2], "1": [2, 2**31]},
    "a negative replica": {"0": [1, 2], "1": [-1]},
    "a partition above int32": {"0": [1, 2], str(2**31): [2]},
}
REGISTRATION: dict[str, object] = {
    "version": 5,
    "host": None,
    "port": -1,
    "jmx_port": -1,
    "timestamp": "0",
    "features": {},
}


def controller_epoch(cluster: OurCluster) -> int:
    return int(cluster.znodes.client.get("/controller_epoch")[0])


def kafka_topics_describe(cluster: OurCluster, topic: str) -> str:
    shown = tools.run_tool(tools.TOPICS, "--bootstrap-server", cluster.bootstrap, "--describe", "--topic", topic)
    assert shown.returncode == 0, shown.stderr
    return shown.stdout


def assert_a_new_topic_is_served(cluster: OurCluster, epoch_before: int) -> None:
    topic = f"beside-{secrets.token_hex(4)}"
    serve_topic(cluster.znodes, topic, [[1, 2, 3]])
    assert controller_epoch(cluster) == epoch_before
    assert "Leader: 1" in kafka_topics_describe(cluster, topic)


@pytest.mark.parametrize(
    ("protocol", "endpoint", "broker_id"),
    [
        pytest.param("QUIC", "PLAINTEXT://127.0.0.1:9092", "60", id="unknown protocol"),
        pytest.param("PLAINTEXT", "PLAINTEXT://127.0.0.1:70000", "60", id="port out of range"),
        pytest.param("PLAINTEXT", "PLAINTEXT://127.0.0.1:9092", str(2**31), id="id out of range"),
    ],
)
def test_a_poisoned_registration_stops_nobody(
    our_cluster: OurCluster, protocol: str, endpoint: str, broker_id: str
) -> None:
    epoch = controller_epoch(our_cluster)
    registration = REGISTRATION | {"endpoints": [endpoint], "listener_security_protocol_map": {"PLAINTEXT": protocol}}
    path = f"/brokers/ids/{broker_id}"
    our_cluster.znodes.client.create(path, json.dumps(registration).encode())
    try:
        wait_until_logged(our_cluster.controller.process, path)
        assert_a_new_topic_is_served(our_cluster, epoch)
    finally:
        our_cluster.znodes.client.delete(path)


@pytest.mark.parametrize("partitions", list(POISONED_TOPICS.values()), ids=list(POISONED_TOPICS))
def test_a_topic_with_one_impossible_entry_is_served_by_the_others(
    our_cluster: OurCluster, partitions: dict[str, list[int]]
) -> None:
    epoch = controller_epoch(our_cluster)
    topic = f"poisoned-{secrets.token_hex(4)}"
    our_cluster.znodes.client.create(
        f"/brokers/topics/{topic}", json.dumps({"version": 1, "partitions": partitions}).encode()
    )
    our_cluster.wait_until_served(topic)
    assert_a_new_topic_is_served(our_cluster, epoch)
    assert our_cluster.znodes.read(f"/brokers/topics/{topic}")["partitions"] == partitions, "it was given an id since"
    assert "PartitionCount: 1" in kafka_topics_describe(our_cluster, topic)
    our_cluster.znodes.client.delete(f"/brokers/topics/{topic}", recursive=True)


def test_a_topic_that_vanishes_takes_its_reassignment_with_it(our_cluster: OurCluster) -> None:
    znodes = our_cluster.znodes
    our_cluster.serve_topic("vanishing", [[1, 2]])
    our_cluster.serve_topic("staying", [[1, 2]])
    our_cluster.kafka.broker(6).pause()
    try:
        znodes.reassign({("vanishing", 0): [3, 6]})
        wait_until_reassigning(znodes, "vanishing")
        znodes.client.delete("/brokers/topics/vanishing", recursive=True)
        wait_until_gone(znodes, REASSIGN_PARTITIONS)
    finally:
        our_cluster.kafka.broker(6).resume()
    znodes.reassign({("staying", 0): [2, 3]})
    wait_until_moved(our_cluster.znodes, "staying", [2, 3])


def test_an_unreadable_topic_is_left_alone_and_served_when_it_is_repaired(our_cluster: OurCluster) -> None:
    znodes = our_cluster.znodes
    znodes.client.create("/brokers/topics/garbled", b"{not json")
    wait_until_logged(our_cluster.controller.process, "garbled")
    our_cluster.serve_topic("readable", [[1, 2]])
    znodes.client.set("/brokers/topics/garbled", json.dumps({"version": 1, "partitions": {"0": [3, 4]}}).encode())
    our_cluster.wait_until_served("garbled")
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
    with socket.create_connection(("127.0.0.1", our_cluster.controller.port), timeout=60) as connection:
        connection.sendall(frame)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(1) == b""
    topic = f"after-{secrets.token_hex(4)}"
    our_cluster.serve_topic(topic, [[1, 2]])
    assert our_cluster.znodes.controller() == our_cluster.controller.controller_id
