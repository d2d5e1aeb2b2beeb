"""Strangers, neither brokers nor administrators, at the controller's port from another address of this machine:
refused.

Whatever strangers send, a new topic gets its leader, and the controller stays the same.
"""

import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from confluent_kafka.admin import AdminClient
from kio.schema.alter_user_scram_credentials.v0 import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from kio.schema.alter_user_scram_credentials.v0.request import ScramCredentialUpsertion
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as KioBrokerId
from kio.static.primitive import i8, i32, i64
from kio.static.protocol import RequestPayload

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.wire.codecs.entries import encode_unsigned_varint
from controller_core.wire.codecs.frames import decode_response, encode_request
from controller_core.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from devcluster.waiting.vocabulary import wait_until_logged
from tests.real.controller.clusters import OurCluster

STRANGER = "127.0.0.77"
SOON_S = 60
LITTLE_CPU_S = 15
"""Seconds of processor time, which other processes do not affect: elapsed time would fail on a busy machine."""


class Connection:
    """A connection to the controller's port from an address of this machine."""

    def __init__(self, port: int, address: str = STRANGER) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(address, 0))

    def ask(self, request: RequestPayload) -> bytes | None:
        return self.send(encode_request(request, 5, "stranger"))

    def send(self, frame: bytes) -> bytes | None:
        """Send a frame, and return the answer's content; None if the connection was closed instead."""
        try:
            self._socket.sendall(frame)
            head = self._socket.recv(4, socket.MSG_WAITALL)
        except ConnectionError:
            return None
        return self._socket.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL) if len(head) == 4 else None

    def begin(self, part: bytes) -> None:
        """Send the beginning of a frame."""
        self._socket.sendall(part)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def stranger(our_cluster: OurCluster) -> Iterator[Connection]:
    connection = Connection(our_cluster.controller.port)
    yield connection
    connection.close()


@contextmanager
def little_work(cluster: OurCluster) -> Iterator[None]:
    """Assert that the block costs the controller little processor time."""
    before_s = cluster.controller.process.cpu_s
    yield
    assert cluster.controller.process.cpu_s - before_s < LITTLE_CPU_S


@contextmanager
def assert_unmoved(cluster: OurCluster, topic: str) -> Iterator[None]:
    """Assert that after the block a new topic is served with little work, clients see it, and the controller is the
    same.
    """
    epoch, _ = cluster.znodes.client.get("/controller_epoch")
    yield
    with little_work(cluster):
        cluster.serve_topic(topic, [[1, 2, 3], [4, 5, 6]])
    assert topic in AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(topic, timeout=SOON_S).topics
    assert cluster.znodes.client.get("/controller_epoch")[0] == epoch


def test_a_stranger_cannot_shut_brokers_down(our_cluster: OurCluster, stranger: Connection) -> None:
    our_cluster.serve_topic("led-on", [[1, 2, 3]])
    with assert_unmoved(our_cluster, "after-shutdowns"):
        for broker in range(1, 7):
            request = ControlledShutdownRequest(broker_id=BrokerId(broker), broker_epoch=BrokerEpoch(-1))
            answer = stranger.ask(request)
            assert answer is not None
            response = decode_response(ControlledShutdownResponse, answer)
            assert response.error_code is ErrorCode.cluster_authorization_failed
    assert our_cluster.znodes.is_served("led-on", [0])
    wait_until_logged(our_cluster.controller.process, "--broker-cidr")


def test_a_stranger_gets_no_producer_ids(our_cluster: OurCluster, stranger: Connection) -> None:
    answer = stranger.ask(AllocateProducerIdsRequest(broker_id=KioBrokerId(1), broker_epoch=i64(-1)))
    assert answer is not None
    response = decode_response(AllocateProducerIdsResponse, answer)
    assert response.error_code is ErrorCode.cluster_authorization_failed


def test_a_stranger_takes_over_no_user(our_cluster: OurCluster, stranger: Connection) -> None:
    upsertion = ScramCredentialUpsertion(
        name="admin", mechanism=i8(1), iterations=i32(8192), salt=b"salt", salted_password=b"stolen"
    )
    answer = stranger.ask(AlterUserScramCredentialsRequest(deletions=(), upsertions=(upsertion,)))
    assert answer is not None
    (result,) = decode_response(AlterUserScramCredentialsResponse, answer).results
    assert (result.user, result.error_code) == ("admin", ErrorCode.cluster_authorization_failed)
    assert not our_cluster.znodes.client.exists("/config/users/admin")
    wait_until_logged(our_cluster.controller.process, "--admin-cidr")


@pytest.mark.parametrize("address", [STRANGER, "127.0.0.1"], ids=["a stranger", "an administrator"])
def test_millions_of_items_hold_up_nobody(our_cluster: OurCluster, address: str) -> None:
    count = 2_000_000
    body = encode_unsigned_varint(count + 1) + b"\1" * count + struct.pack(">i", 1000) + b"\0"
    content = struct.pack(">hhih", 20, 5, 5, -1) + b"\0" + body
    with assert_unmoved(our_cluster, f"after-millions-{address}"):
        connection = Connection(our_cluster.controller.port, address)
        with little_work(our_cluster):
            assert connection.send(struct.pack(">i", len(content)) + content) is None
        connection.close()


def test_thousands_of_idle_and_half_open_connections_leave_our_own_working(our_cluster: OurCluster) -> None:
    beginnings = (b"", b"\0\0", struct.pack(">i", 1000), struct.pack(">ihhi", 100_000, 19, 7, 5) + b"\0" * 500)
    with ExitStack() as open_ones:
        for number in range(6000):  # more than are served
            connection = Connection(our_cluster.controller.port, f"127.0.0.{77 + number % 10}")
            open_ones.callback(connection.close)
            with suppress(ConnectionError):  # there are too many already
                connection.begin(beginnings[number % len(beginnings)])
        with assert_unmoved(our_cluster, "beside-idle-ones"):
            our_cluster.kafka.broker(6).stop()  # it requests a controlled shutdown
            our_cluster.kafka.broker(6).start()  # and the controller opens a new connection to it
