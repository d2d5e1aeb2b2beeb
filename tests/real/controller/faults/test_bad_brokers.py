"""A broker that answers errors, answers nonsense, closes the connection or hangs: only its own replicas suffer."""

import json
import socketserver
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.real.controller.clusters import OurCluster

BAD_BROKER = 50
LEADER_AND_ISR, STOP_REPLICA, API_VERSIONS = 4, 5, 18
STALE_BROKER_EPOCH = 77

Answer = Callable[[int, int], bytes | None]
"""The content of a response frame for an API key and a correlation id; None closes the connection."""


def with_an_error(api_key: int, correlation_id: int) -> bytes:
    body = struct.pack(">h", STALE_BROKER_EPOCH)
    if api_key in (LEADER_AND_ISR, STOP_REPLICA):
        body += b"\x01"
    return struct.pack(">ib", correlation_id, 0) + body + b"\x00"


def with_nonsense(api_key: int, correlation_id: int) -> bytes:
    return struct.pack(">ib", correlation_id, 0) + b"\xff" * 40


def for_somebody_else(api_key: int, correlation_id: int) -> bytes:
    return with_an_error(api_key, correlation_id + 1)


def by_closing(api_key: int, correlation_id: int) -> None:
    return None


@contextmanager
def bad_broker(cluster: OurCluster, answer: Answer) -> Iterator[threading.Event]:
    """A registered broker that is none; the event is set when the controller has sent it something."""
    asked = threading.Event()

    class Connection(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while len(head := self.rfile.read(12)) == 12:
                length, api_key, _, correlation_id = struct.unpack(">ihhi", head)
                self.rfile.read(length - 8)
                if api_key != API_VERSIONS:  # which only asks whether it is there
                    asked.set()
                content = answer(api_key, correlation_id)
                if content is None:
                    return
                self.wfile.write(struct.pack(">i", len(content)) + content)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection) as server:
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        port = server.server_address[1]
        registration = {
            "version": 5,
            "host": "127.0.0.1",
            "port": port,
            "endpoints": [f"PLAINTEXT://127.0.0.1:{port}"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "jmx_port": -1,
            "features": {},
        }
        path = f"/brokers/ids/{BAD_BROKER}"
        cluster.znodes.client.create(path, json.dumps(registration).encode(), ephemeral=True)
        try:
            yield asked
        finally:
            cluster.znodes.client.delete(path)
            server.shutdown()
            serving.join()


@pytest.mark.parametrize("answer", [with_an_error, with_nonsense, for_somebody_else, by_closing])
def test_the_other_brokers_are_served_beside_a_broker_that_answers(our_cluster: OurCluster, answer: Answer) -> None:
    topic = f"beside-{answer.__name__}"
    with bad_broker(our_cluster, answer) as asked:
        assert asked.wait(30)
        our_cluster.serve_topic(topic, [[1, 2, 3]])
    assert our_cluster.znodes.controller() == our_cluster.controller.controller_id


def test_an_unreadable_registration_is_no_broker(our_cluster: OurCluster) -> None:
    path = f"/brokers/ids/{BAD_BROKER}"
    our_cluster.znodes.client.create(path, b"{not json", ephemeral=True)
    try:
        our_cluster.wait_until_logged("unreadable broker registration")
        our_cluster.serve_topic("beside-unreadable", [[1, 2, 3]])
    finally:
        our_cluster.znodes.client.delete(path)
