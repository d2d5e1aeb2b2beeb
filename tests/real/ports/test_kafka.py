"""Each Kafka port of the controller against each attack of strangers: brokers and administrators are served meanwhile,
and the process holds little memory and few descriptors.

`PORTS` and `ATTACKS` are the table. A new port or attack is a new row.
"""

import os
import resource
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from kio.schema.create_topics.v5.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v5.response import CreateTopicsResponse
from kio.schema.types import BrokerId as KioBrokerId
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.wire.codecs.frames import decode_response, encode_request
from controller_core.wire.connections.security import Login
from controller_core.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    ControlledShutdownRequest,
    ErrorCode,
)
from devcluster.clients.identity import Identity
from devcluster.clients.requests import answer_to, open_connection
from devcluster.clusters.certificates import Authority
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import write_properties_file
from devcluster.clusters.zookeeper import ZooKeeper, open_client

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PORTS: Final = ("PLAINTEXT", "SSL", "SASL_SSL")
"""The listeners, each with the protocol that it is named after."""
BROKER_ID: Final = 1
BROKER: Final = "127.0.0.1"
ADMINISTRATOR: Final = "127.0.0.9"
STRANGERS: Final = tuple(f"127.0.1.{number}" for number in range(1, 101))
LOGIN: Final = Login(mechanism="PLAIN", username="alice", password="a secret of alice")
SOON_S: Final = 60
_MOST_LOG_BYTES: Final = 256 << 10
_MOST_MORE_BYTES: Final = 160 << 20
_MOST_DESCRIPTORS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Connections of strangers, which stay open."""

    connections: int = 300
    shakes_hands: bool = True
    """They complete the TLS handshake, at ports that have one."""
    sent: bytes = b""


ATTACKS: Final = {
    "no login": Attack(connections=1_500),
    "half a handshake": Attack(shakes_hands=False, sent=b"\x16\x03\x01"),
    "slow": Attack(sent=b"\0"),
    "half a message": Attack(sent=struct.pack(">ihhi", 60_000, 18, 0, 1) + bytes(30_000)),
    "too large": Attack(sent=struct.pack(">ihhi", (1 << 31) - 1, 18, 0, 1) + bytes(30_000)),
    "wrong role": Attack(
        sent=encode_request(
            ControlledShutdownRequest(broker_id=BrokerId(BROKER_ID), broker_epoch=BrokerEpoch(1)), 1, "x"
        )
    ),
    "5,000 connections": Attack(connections=5_000, shakes_hands=False, sent=b"\x16\x03\x01"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A controller that listens by each protocol, and a registered broker."""

    controller: ControllerProcess
    authority: Authority
    epoch: int
    """The epoch of the broker."""

    def address(self, port: str) -> tuple[str, int]:
        return "127.0.0.1", self.controller.ports[port]

    def identity(self, port: str) -> Identity:
        """Return the identity of a caller with a login, if the port wants one."""
        authority = self.authority.certificate if port.endswith("SSL") else None
        return Identity(protocol=port, authority=authority, login=LOGIN if port.startswith("SASL") else None)

    def ask(self, port: str, source: str, request: RequestPayload, response_type: type[Any]) -> Any:
        """Return the answer to a request from an address, after a login."""
        with open_connection(
            self.address(port), identity=self.identity(port), timeout_s=SOON_S, source=source
        ) as connection:
            return decode_response(response_type, answer_to(connection, encode_request(request, 1, "test")))

    def assert_broker_is_served(self, port: str) -> None:
        request = AllocateProducerIdsRequest(broker_id=KioBrokerId(BROKER_ID), broker_epoch=i64(self.epoch))
        answer = self.ask(port, BROKER, request, AllocateProducerIdsResponse)
        assert ErrorCode(answer.error_code) is ErrorCode.none

    def assert_administrator_is_served(self, port: str, topic: str) -> None:
        creatable = CreatableTopic(
            name=TopicName(topic), num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
        )
        timeout = i32Timedelta.parse(timedelta(seconds=SOON_S))
        request = CreateTopicsRequest(topics=(creatable,), timeout=timeout, validate_only=False)
        (result,) = self.ask(port, ADMINISTRATOR, request, CreateTopicsResponse).topics
        assert ErrorCode(result.error_code) is ErrorCode.none

    def count_descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.controller.process.pid}/fd"))

    def read_memory_bytes(self) -> int:
        """Return the resident memory of the controller's process."""
        pages = Path(f"/proc/{self.controller.process.pid}/statm").read_text().split()[1]
        return int(pages) * resource.getpagesize()

    def count_log_bytes(self) -> int:
        return self.controller.process.log_path.stat().st_size

    @contextmanager
    def attack(self, port: str, attack: Attack) -> Iterator[None]:
        """Open the connections of strangers, and keep them until the end of the block."""
        stranger = replace(self.identity(port), login=None)
        opened: list[socket.socket] = []
        try:
            for number in range(attack.connections):
                source = STRANGERS[number % len(STRANGERS)]
                with suppress(OSError):  # it is refused, or closed to make room
                    opened.append(socket.create_connection(self.address(port), SOON_S, source_address=(source, 0)))
                    if attack.shakes_hands:
                        opened[-1] = stranger.wrap_connection(opened[-1], "localhost")
                    opened[-1].sendall(attack.sent)
            yield
        finally:
            for each in opened:
                each.close()


@pytest.fixture(scope="module")
def site(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Site]:
    name, connect = "kafka-ports", f"{zookeeper.connect}/kafka-ports"
    files = servers_folder.data(f"{name}-files")
    authority = Authority(files)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    properties = write_properties_file(
        files / "controller.properties",
        {
            "listener.security.protocol.map": ",".join(f"{each}:{each}" for each in PORTS),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(authority.issue("controller", "localhost", "IP:127.0.0.1").store()),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.certificate),
            "sasl.enabled.mechanisms": LOGIN.mechanism,
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                f'{module} required user_{LOGIN.username}="{LOGIN.password}";'
            ),
        },
    )
    settings = {"properties": str(properties), "admin_cidr": [f"{ADMINISTRATOR}/32"]}
    listeners = ListenerNames(clients="SSL", others=("SASL_SSL",), protocols=dict(zip(PORTS, PORTS, strict=True)))
    raise_descriptor_limit()
    with (
        ControllerProcess(
            servers_folder, connect, name=f"{name}-controller", settings=settings, listeners=listeners
        ) as controller,
        PythonBroker(servers_folder, connect, BROKER_ID, name=f"{name}-broker"),
        open_client(connect) as client,
    ):
        epoch = client.exists(f"/brokers/ids/{BROKER_ID}").czxid
        yield Site(controller=controller, authority=authority, epoch=epoch)


def raise_descriptor_limit() -> None:
    """Let this process and its children open as many descriptors as they may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("port", PORTS)
def test_strangers_take_little_and_keep_nobody_out(site: Site, port: str, attack: str) -> None:
    memory, descriptors, log = site.read_memory_bytes(), site.count_descriptors(), site.count_log_bytes()
    with site.attack(port, ATTACKS[attack]):
        site.assert_broker_is_served(port)
        site.assert_administrator_is_served(port, f"{port}-{attack.replace(' ', '-').replace(',', '')}")
        assert site.read_memory_bytes() - memory < _MOST_MORE_BYTES
        assert site.count_descriptors() - descriptors < _MOST_DESCRIPTORS
        assert site.count_log_bytes() - log < _MOST_LOG_BYTES
