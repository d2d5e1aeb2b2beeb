"""Malformed requests and batches at the port of our broker while producers and followers continue.

Each is refused on its own, with the error of a stock broker.
"""

import secrets
import socket
import struct
from collections.abc import Iterator
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.produce.v11.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32, i32Timedelta

from controller_core.wire.codecs.frames import encode_request
from devcluster.clients.requests import send_request
from devcluster.clusters.kafka import Broker
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from tests.real.replica_broker.mixed import MixedCluster
from tests.unit.replica_broker.log.batches import CONTROL, batch, old_message

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

TOPIC = "under-bad-input"
OURS, STOCK = 0, 1
"""The partition that our broker leads, and the one that a stock broker leads."""
MOST_BYTES = 10_000
WHOLE = batch(b"good")


def damage(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


BATCHES = {
    "a byte of a record is another": damage(WHOLE, len(WHOLE) - 2),
    "the CRC is another": damage(WHOLE, 20),
    "cut within the records": WHOLE[:-1],
    "cut within the header": WHOLE[:30],
    "larger than the topic allows": batch(secrets.token_bytes(MOST_BYTES)),
    "of an older format": old_message(1),
    "of an unknown format": WHOLE[:16] + b"\x03" + WHOLE[17:],
    "more records than it says": batch(b"a", b"b", count=1),
    "fewer records than it says": batch(b"a", count=3, last_offset_delta=2),
    "of brokers alone": batch(b"a", attributes=CONTROL),
    "no batch at all": b"",
    "several": WHOLE + WHOLE,
    "bytes by chance": bytes(range(1, 200)),
}


def produce(data: bytes, partition: int) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=None,
        acks=i16(-1),
        timeout=i32Timedelta.parse(timedelta(seconds=20)),
        topic_data=(
            TopicProduceData(
                name=TopicName(TOPIC),
                partition_data=(PartitionProduceData(index=i32(partition), records=Records(data)),),
            ),
        ),
    )


_CUT = encode_request(produce(WHOLE, OURS), 1, "stranger")
FRAMES = {
    "too long": struct.pack(">i", 2**31 - 1) + b"x" * 64,
    "negative length": struct.pack(">i", -5),
    "cut": _CUT[: len(_CUT) // 2],
    "shorter than what is in it": struct.pack(">i", len(_CUT) // 2) + _CUT[4 : 4 + len(_CUT) // 2],
    "HTTP": b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
    "an unknown version": struct.pack(">ihhi", 10, 0, 99, 1) + b"\xff\xff",
    "a command that is cut": struct.pack(">ihhi", 10, 4, 7, 1) + b"\xff\xff",
    "random bytes": struct.pack(">i", 64) + secrets.token_bytes(64),
}


@pytest.fixture(scope="module")
def further(started: MixedCluster, servers_folder: RunFolder) -> Iterator[PythonBroker]:
    """A broker of ours whose log may report bad requests."""
    started.start_all()
    name = f"bad-input-{'kafka' if started.own_controller is None else 'kontroller'}"
    with PythonBroker(servers_folder, started.kafka.zookeeper_connect, 6, name=name) as broker:
        replicas = [[6, 1, 2], [1, 2, 6]]
        started.serve_topic(TOPIC, replicas, {"max.message.bytes": str(MOST_BYTES), "min.insync.replicas": "2"})
        yield broker


def refusal(broker: Broker | PythonBroker, data: bytes, partition: int) -> ErrorCode:
    answer = send_request(("127.0.0.1", broker.port), produce(data, partition))
    error_code: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return error_code


def test_good_clients_and_followers_go_on_beside_what_is_wrong(
    cluster: MixedCluster, further: PythonBroker, subtests: pytest.Subtests
) -> None:
    bootstrap = f"{cluster.bootstrap},{further.address}"
    with nothing_lost(bootstrap, TOPIC, more_than=100) as producer:
        for name, frame in FRAMES.items():
            with subtests.test(name), socket.create_connection(("127.0.0.1", further.port), timeout=60) as connection:
                connection.sendall(frame)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(1) == b""
        for name, data in BATCHES.items():
            with subtests.test(name):
                of_stock = refusal(cluster.kafka.broker(1), data, STOCK)
                assert refusal(further, data, OURS) is of_stock
                assert of_stock is not ErrorCode.none
        assert refusal(further, WHOLE, OURS) is ErrorCode.none
    assert producer.stop().errors == []
    assert cluster.znodes.is_served(TOPIC, [OURS, STOCK])
    for partition in (OURS, STOCK):
        wait_until(lambda partition=partition: _are_the_same(cluster, further, partition), "all have the same")  # type: ignore[misc]  # a default
    assert "Traceback" not in further.log()


def _are_the_same(cluster: MixedCluster, further: PythonBroker, partition: int) -> bool:
    folders = [broker.log_folder / f"{TOPIC}-{partition}" for broker in (cluster.kafka.broker(1), further)]
    one, other = (b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))) for folder in folders)
    return one == other != b""
