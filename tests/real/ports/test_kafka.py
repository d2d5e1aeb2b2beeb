"""Each Kafka port of the controller and the reference broker against each attack of strangers: brokers and
administrators are served meanwhile, and the process holds little memory and few descriptors.

`PORTS` and `ATTACKS` are the table. A new port or attack is a new row.
"""

import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import pytest
from kazoo.client import KazooClient
from kio.schema.create_topics.v5.request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v5.response import CreateTopicsResponse
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.fetch.v12.response import FetchResponse
from kio.schema.metadata.v9.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v9.response import MetadataResponse
from kio.schema.produce.v9.request import PartitionProduceData, ProduceRequest, TopicProduceData
from kio.schema.produce.v9.response import ProduceResponse
from kio.schema.types import BrokerId as KioBrokerId
from kio.schema.types import TopicName
from kio.static.primitive import Records, i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload

from controller_core.model.ids import BrokerEpoch, BrokerId, PartitionId, TopicId
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.wire.codecs.frames import decode_response, encode_request
from controller_core.wire.connections.security import Login
from controller_core.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    ControlledShutdownRequest,
    ErrorCode,
)
from controller_core.zk.codecs import encode_topic
from devcluster.clients.identity import Identity
from devcluster.clients.requests import ConnectionClosed, answer_to, log_in, open_connection
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.certificates import Authority
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import write_properties_file
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.ports.strangers import SOON_S, Holdings, connect_strangers, raise_own_limit
from tests.unit.replica_broker.log.batches import batch

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_SSL")
"""The listeners of each process, each with the protocol that it is named after."""
PORTS: Final = {
    **{f"controller {each}": ("controller", each) for each in PROTOCOLS},
    "broker SASL_SSL": ("broker", "SASL_SSL"),  # without logins: `real/replica_broker/faults/test_strangers.py`
}
BROKER_ID: Final = 1
BROKER: Final = "127.0.0.1"
ADMINISTRATOR: Final = "127.0.0.9"
LOGIN: Final = Login(mechanism="PLAIN", username="alice", password="a secret of alice")
SERVED: Final = "served"
LARGE: Final = "large"
_MANY_TOPICS: Final = 2_400
_TOPICS_AT_ONCE: Final = 200
_LONGEST_NAME: Final = 249
_RECORDS_BYTES: Final = 900_000
_SOON: Final = i32Timedelta.parse(timedelta(seconds=SOON_S))
_MOST_LOG_BYTES: Final = 256 << 10
_MOST_DESCRIPTORS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Connections of strangers, which stay open."""

    connections: int = 300
    shakes_hands: bool = True
    """They complete the TLS handshake, at ports that have one."""
    logs_in: bool = False
    """They have a login, at ports that want one."""
    reads: bool = True
    sent: bytes = b""


def _fetch() -> FetchRequest:
    partition = FetchPartition(partition=i32(0), fetch_offset=i64(0), partition_max_bytes=i32(1 << 30))
    topic = FetchTopic(topic=TopicName(LARGE), partitions=(partition,))
    return FetchRequest(max_wait=_SOON, min_bytes=i32(1), topics=(topic,), forgotten_topics_data=())


def _read_metadata(topic: str | None = None) -> MetadataRequest:
    topics = None if topic is None else (MetadataRequestTopic(name=TopicName(topic)),)
    return MetadataRequest(
        topics=topics,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=False,
        include_topic_authorized_operations=False,
    )


def _shut_down() -> ControlledShutdownRequest:
    return ControlledShutdownRequest(broker_id=BrokerId(BROKER_ID), broker_epoch=BrokerEpoch(1))


ATTACKS: Final = {
    "no login": Attack(connections=1_500),
    "half a handshake": Attack(shakes_hands=False, sent=b"\x16\x03\x01"),
    "slow": Attack(sent=b"\0"),
    "half a message": Attack(sent=struct.pack(">ihhi", 60_000, 18, 0, 1) + bytes(30_000)),
    "too large": Attack(sent=struct.pack(">ihhi", (1 << 31) - 1, 18, 0, 1) + bytes(30_000)),
    "wrong role": Attack(sent=encode_request(_shut_down(), 1, "x")),
    "5,000 connections": Attack(connections=5_000, shakes_hands=False, sent=b"\x16\x03\x01"),
    "unread metadata": Attack(
        connections=500, logs_in=True, reads=False, sent=encode_request(_read_metadata(), 1, "x")
    ),
    "unread records": Attack(logs_in=True, reads=False, sent=encode_request(_fetch(), 1, "x")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A controller and a registered broker that listen by each protocol."""

    controller: ControllerProcess
    broker: PythonBroker
    authority: Authority
    epoch: int
    """The epoch of the broker."""

    def address(self, port: str) -> tuple[str, int]:
        process, protocol = PORTS[port]
        return "127.0.0.1", (self.controller if process == "controller" else self.broker).ports[protocol]

    def identity(self, port: str) -> Identity:
        """Return the identity of a caller with a login, if the port wants one."""
        _, protocol = PORTS[port]
        authority = self.authority.certificate if protocol.endswith("SSL") else None
        return Identity(protocol=protocol, authority=authority, login=LOGIN if protocol.startswith("SASL") else None)

    def ask(self, port: str, source: str, request: RequestPayload, response_type: type[Any]) -> Any:
        """Return the answer to a request from an address, after a login."""
        with open_connection(
            self.address(port), identity=self.identity(port), timeout_s=SOON_S, source=source
        ) as connection:
            return decode_response(response_type, answer_to(connection, encode_request(request, 1, "test")))

    def holdings(self, port: str) -> Holdings:
        process, _ = PORTS[port]
        return Holdings(process=(self.controller if process == "controller" else self.broker).process)

    def assert_broker_is_served(self, port: str) -> None:
        """Ask the controller for producer ids as the broker, or the broker for records as another broker."""
        if port.startswith("controller"):
            request = AllocateProducerIdsRequest(broker_id=KioBrokerId(BROKER_ID), broker_epoch=i64(self.epoch))
            answer = self.ask(port, BROKER, request, AllocateProducerIdsResponse)
            assert ErrorCode(answer.error_code) is ErrorCode.none
            return
        (topic,) = self.ask(port, BROKER, _fetch(), FetchResponse).responses
        assert len(topic.partitions[0].records or b"") > _RECORDS_BYTES

    def assert_administrator_is_served(self, port: str, topic: str) -> None:
        """Find a topic, and create one; at the broker produce to it."""
        (described,) = self.ask(port, ADMINISTRATOR, _read_metadata(SERVED), MetadataResponse).topics
        assert described.error_code is ErrorCode.none
        at_controller = port if port.startswith("controller") else "controller PLAINTEXT"
        assigned = CreatableReplicaAssignment(partition_index=i32(0), broker_ids=(KioBrokerId(BROKER_ID),))
        creatable = CreatableTopic(
            name=TopicName(topic),
            num_partitions=i32(-1),
            replication_factor=i16(-1),
            assignments=(assigned,),
            configs=(),
        )
        request = CreateTopicsRequest(topics=(creatable,), timeout=_SOON, validate_only=False)
        (result,) = self.ask(at_controller, ADMINISTRATOR, request, CreateTopicsResponse).topics
        assert ErrorCode(result.error_code) is ErrorCode.none
        if at_controller != port:
            wait_until(lambda: self.produce(port, topic), f"{topic} is led")

    def produce(self, port: str, topic: str, value: bytes = b"one") -> bool:
        """Return True if the broker has acknowledged a message."""
        data = TopicProduceData(
            name=TopicName(topic), partition_data=(PartitionProduceData(index=i32(0), records=Records(batch(value))),)
        )
        request = ProduceRequest(transactional_id=None, acks=i16(-1), timeout=_SOON, topic_data=(data,))
        (result,) = self.ask(port, ADMINISTRATOR, request, ProduceResponse).responses
        return ErrorCode(result.partition_responses[0].error_code) is ErrorCode.none

    def attack(self, port: str, attack: Attack) -> AbstractContextManager[object]:
        """Open the connections of strangers, and keep them until the end of the block."""
        identity = self.identity(port)

        def prepare(connection: Any) -> Any:
            if attack.shakes_hands:
                connection = replace(identity, login=None).wrap_connection(connection, "localhost")
            if attack.logs_in and identity.login is not None:
                try:
                    log_in(connection, identity.login)
                except ConnectionClosed as error:
                    raise ConnectionError from error
            return connection

        _, number = self.address(port)
        return connect_strangers(number, attack.connections, sent=attack.sent, prepare=prepare, reads=attack.reads)


@pytest.fixture(scope="module")
def site(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Site]:
    name, connect = "kafka-ports", f"{zookeeper.connect}/kafka-ports"
    files = servers_folder.data(f"{name}-files")
    authority = Authority(files)
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    properties = write_properties_file(
        files / "listeners.properties",
        {
            "listener.security.protocol.map": ",".join(f"{each}:{each}" for each in PROTOCOLS),
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
    listeners = ListenerNames(
        clients="SSL", others=("SASL_SSL",), protocols=dict(zip(PROTOCOLS, PROTOCOLS, strict=True))
    )
    raise_own_limit()
    with open_client(zookeeper.connect) as client:
        client.ensure_path("/kafka-ports")
    with open_client(connect) as client:
        _write_many_topics(client)
        with (
            PythonBroker(
                servers_folder,
                connect,
                BROKER_ID,
                name=f"{name}-broker",
                settings={"properties": str(properties)},
                listeners=listeners,
            ) as broker,
            ControllerProcess(
                servers_folder, connect, name=f"{name}-controller", settings=settings, listeners=listeners
            ) as controller,
        ):
            epoch = client.exists(f"/brokers/ids/{BROKER_ID}").czxid
            site = Site(controller=controller, broker=broker, authority=authority, epoch=epoch)
            for topic in (SERVED, LARGE):
                serve_topic(ClusterZnodes(client), topic, [[BROKER_ID]], {"retention.ms": "-1"})  # the records are old
            for _ in range(8):
                wait_until(lambda: site.produce("broker SASL_SSL", LARGE, bytes(_RECORDS_BYTES)), "it is led")
            yield site


def _write_many_topics(client: KazooClient) -> None:
    """Write topics whose names make an answer about all of them large."""
    client.ensure_path("/brokers/topics")
    for first in range(0, _MANY_TOPICS, _TOPICS_AT_ONCE):
        transaction = client.transaction()
        for number in range(first, first + _TOPICS_AT_ONCE):
            assigned = TopicAssignment(
                topic_id=TopicId(uuid4()),
                partitions={PartitionId(0): ReplicaAssignment(replicas=(BrokerId(BROKER_ID),))},
            )
            transaction.create(f"/brokers/topics/{number:0{_LONGEST_NAME}}", encode_topic(assigned))
        assert not any(isinstance(each, Exception) for each in transaction.commit())


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("port", PORTS)
def test_strangers_take_little_and_keep_nobody_out(site: Site, port: str, attack: str) -> None:
    site.ask(port, ADMINISTRATOR, _read_metadata(), MetadataResponse)  # the memory of a large answer is not returned
    name = f"{port}-{attack}".replace(" ", "-").replace(",", "")
    little = site.holdings(port).assert_little_is_taken(descriptors=_MOST_DESCRIPTORS, log_bytes=_MOST_LOG_BYTES)
    with little as check, site.attack(port, ATTACKS[attack]):
        site.assert_broker_is_served(port)
        site.assert_administrator_is_served(port, name)
        check()
