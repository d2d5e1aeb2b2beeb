"""Strangers at the ports of our broker, one kind at a time: each is bounded in memory and connections, and brokers and
clients are served meanwhile.

The strangers come from other loopback addresses than the servers and the clients that are served.
"""

import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from controller_core.wire.messages import StopReplicaResponse
from devcluster.clients.requests import send_request
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import wait_until_acknowledged
from tests.real.replica_broker.mixed import MixedCluster
from tests.real.replica_broker.test_authorization import stop_and_delete

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

STRANGERS = ("127.0.0.9", "127.0.0.10", "127.0.0.11", "127.0.0.12")
LIMITS = {"max_connections": 1_000, "max_connections_per_address": 300}
MOST_MORE_MIB = 150
"""More than all budgets of strangers' requests together would be an unbounded buffer."""
PRODUCE, LARGEST = 0, 2**31 - 1


class Strangers:
    """Connections of strangers to our broker. A refused one is closed."""

    def __init__(self, cluster: MixedCluster, broker: PythonBroker) -> None:
        self.cluster = cluster
        self.address = ("127.0.0.1", broker.port)
        self.opened: list[socket.socket] = []

    def open(self, number: int, first_bytes: bytes = b"") -> None:
        """Open connections in turn from each address, and send the beginning of something on each."""
        for at in range(number):
            source = STRANGERS[at % len(STRANGERS)]
            connection = socket.create_connection(self.address, timeout=30, source_address=(source, 0))
            self.opened.append(connection)
            try:
                connection.sendall(first_bytes)
            except ConnectionError:
                assert number > LIMITS["max_connections_per_address"], "only connections above the limits are refused"

    def wait_until_closed(self) -> None:
        """Wait until the broker has closed every connection."""
        for connection in self.opened:
            try:
                assert connection.recv(1) == b""
            except ConnectionError:
                continue

    def close(self) -> None:
        for connection in self.opened:
            connection.close()


def make_start(length: int) -> bytes:
    return struct.pack(">ihhih", length, PRODUCE, 9, 1, -1)


def send_slowly(strangers: Strangers) -> None:
    strangers.open(100, b"\0")


def send_half_a_message(strangers: Strangers) -> None:
    strangers.open(100, make_start(90 << 20) + bytes(100_000))


def send_too_much(strangers: Strangers) -> None:
    strangers.open(40, make_start(LARGEST))
    strangers.wait_until_closed()


def command(strangers: Strangers) -> None:
    epoch = int(strangers.cluster.znodes.client.get("/controller_epoch")[0])
    asked = stop_and_delete("served", controller_epoch=epoch)
    for at in range(100):
        source = STRANGERS[at % len(STRANGERS)]
        answer = send_request(strangers.address, asked, response_type=StopReplicaResponse, source=source)
        assert answer.error_code is ErrorCode.cluster_authorization_failed


def open_many(strangers: Strangers) -> None:
    strangers.open(2 * LIMITS["max_connections"])


ATTACKS: dict[str, Callable[[Strangers], None]] = {
    "slow": send_slowly,
    "half a message": send_half_a_message,
    "too large": send_too_much,
    "wrong role": command,
    "many connections": open_many,
}


def read_memory_mib(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) // 1024


def count_descriptors(process_id: int) -> int:
    return len(list(Path(f"/proc/{process_id}/fd").iterdir()))


@contextmanager
def run_attack(cluster: MixedCluster, broker: PythonBroker, attack: Callable[[Strangers], None]) -> Iterator[None]:
    with ExitStack() as stack:
        strangers = Strangers(cluster, broker)
        stack.callback(strangers.close)
        attack(strangers)
        yield


@pytest.fixture(scope="module")
def attacked(started: MixedCluster, servers_folder: RunFolder) -> Iterator[PythonBroker]:
    """A broker of ours whose log may report bad requests."""
    started.start_all()
    name = f"attacked-{'kafka' if started.own_controller is None else 'kontroller'}"
    with PythonBroker(servers_folder, started.kafka.zookeeper_connect, 7, name=name, settings=LIMITS) as broker:
        yield broker


@pytest.mark.parametrize("name", ATTACKS)
def test_brokers_and_clients_are_served_beside_strangers(
    cluster: MixedCluster, attacked: PythonBroker, name: str
) -> None:
    topic, process_id = f"beside-{name.replace(' ', '-')}", attacked.process.pid
    cluster.serve_topic(topic, [[7, 1], [1, 7]], {"min.insync.replicas": "2"})
    before_mib, before = read_memory_mib(process_id), count_descriptors(process_id)
    with nothing_lost(f"{cluster.bootstrap},{attacked.address}", topic, more_than=50) as producer:
        with run_attack(cluster, attacked, ATTACKS[name]):
            wait_until_acknowledged(producer, 100)
            cluster.serve_topic(f"{topic}-meanwhile", [[7, 1]])
            assert read_memory_mib(process_id) - before_mib < MOST_MORE_MIB
            assert count_descriptors(process_id) - before <= LIMITS["max_connections"]
        wait_until(lambda: count_descriptors(process_id) < before + 50, "the strangers' connections are closed")
    assert producer.stop().errors == []
    assert "Traceback" not in attacked.log()
