"""Each Kafka port of the controller and the reference broker against each attack of strangers: brokers and
administrators are served meanwhile, and the process holds little memory and few descriptors.

`PORTS` and `ATTACKS` are the table. A new port or attack is a new row.
"""

import json
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal
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
from devcluster.clients.identity import Identity, Shown
from devcluster.clients.requests import ConnectionClosed, answer_to, log_in, open_connection
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.certificates import Authority, CertificateFiles
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import ListenerNames
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import write_properties_file
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.ports.strangers import SOON_S, Holdings, connect_strangers, raise_own_limit
from tests.real.replica_broker.test_authorization import stop_and_delete
from tests.unit.replica_broker.log.batches import batch

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""The listeners of each process, each with the protocol that it is named after."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """A port of a process."""

    process: Literal["controller", "broker"]
    protocol: str
    wants_certificates: bool = False
    """Clients must show a certificate (`ssl.client.auth=required`), and ACLs decide what its name may do."""

    @property
    def wants_logins(self) -> bool:
        return self.protocol.startswith("SASL")

    @property
    def knows_administrators(self) -> bool:
        """True if it can tell administrators from strangers: a broker knows no administrators' addresses."""
        return self.process == "controller" or self.wants_logins or self.wants_certificates


PORTS: Final = {
    **{f"controller {each}": Port(process="controller", protocol=each) for each in PROTOCOLS},
    **{f"broker {each}": Port(process="broker", protocol=each) for each in PROTOCOLS},
    "controller SSL with certificates": Port(process="controller", protocol="SSL", wants_certificates=True),
    "broker SSL with certificates": Port(process="broker", protocol="SSL", wants_certificates=True),
}
BROKER_ID: Final = 1
BROKER: Final = "127.0.0.1"
ADMINISTRATOR: Final = "127.0.0.9"
CALLERS: Final = {BROKER: "broker", ADMINISTRATOR: "administrator"}
"""The name of the certificate of the caller at each address. Both are super users."""
READER: Final = "reader"
"""The name of a certificate whose owner may read all topics."""
STRANGER: Final = "stranger"
"""The name of a certificate whose owner has no rights."""
FOREIGN: Final = "foreign"
"""A certificate with the administrator's name that another authority has signed."""
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
_MOST_BEFORE_LOGIN: Final = 300
"""Descriptors of connections that are not known yet, and of the callers that are served."""
_OPEN: Final = ListenerNames(
    clients="SSL", others=PROTOCOLS[2:], protocols=dict(zip(PROTOCOLS, PROTOCOLS, strict=True))
)
_SECURED: Final = ListenerNames(inter_broker="SSL", clients="SSL", protocols={"SSL": "SSL"})
_LOGINS: Final = {
    "listener.security.protocol.map": ",".join(f"{each}:{each}" for each in PROTOCOLS),
    "sasl.enabled.mechanisms": LOGIN.mechanism,
    **dict.fromkeys(
        ("listener.name.sasl_plaintext.plain.sasl.jaas.config", "listener.name.sasl_ssl.plain.sasl.jaas.config"),
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{LOGIN.username}="{LOGIN.password}";',
    ),
}
_CERTIFICATES_AND_ACLS: Final = {
    "listener.security.protocol.map": "SSL:SSL",
    "inter.broker.listener.name": "SSL",
    "ssl.client.auth": "required",
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": ";".join(f"User:CN={each}" for each in ("controller", *CALLERS.values())),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Connections of strangers, which stay open."""

    connections: int = 300
    shakes_hands: bool = True
    """They complete the TLS handshake, at ports that have one."""
    shows: str | None = STRANGER
    """The certificate that they show at ports that want one."""
    commands: bool = False
    """They send what only a broker may send to the controller, or only the controller to a broker, not `sent`."""
    logs_in: bool = False
    """They have a login, at ports that want one."""
    reads: bool = True
    sent: bytes = b""

    def is_possible_at(self, port: Port) -> bool:
        """Return True unless it needs a port that wants certificates, or logins."""
        if self.shows == FOREIGN:
            return port.wants_certificates
        return port.wants_logins or not self.commands or self.logs_in

    def is_admitted_by(self, port: Port) -> bool:
        """Return True if the strangers complete what the port wants before a request."""
        if port.protocol == "PLAINTEXT":
            return True
        has_login = self.logs_in or not port.wants_logins
        has_certificate = self.shows not in (None, FOREIGN) or not port.wants_certificates
        return self.shakes_hands and has_login and has_certificate

    def find_reason(self, port: Port) -> str | None:
        """Return the reason for which the port refuses the strangers, as in the metric; None if it need not."""
        if port.wants_certificates and self.shakes_hands and self.shows in (None, FOREIGN):
            return "tls"
        if not self.commands:
            return None
        return "right" if self.is_admitted_by(port) else "login"


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


_SHUT_DOWN: Final = ControlledShutdownRequest(broker_id=BrokerId(BROKER_ID), broker_epoch=BrokerEpoch(1))
_COMMANDS: Final = {
    "controller": encode_request(_SHUT_DOWN, 1, "x"),
    "broker": encode_request(stop_and_delete(LARGE, controller_epoch=1), 1, "x"),
}
"""The request of a wrong role at each process."""
ATTACKS: Final = {
    "no login": Attack(connections=1_500, shows=None),
    "foreign certificate": Attack(connections=1_500, shows=FOREIGN),
    "half a handshake": Attack(shakes_hands=False, sent=b"\x16\x03\x01"),
    "slow": Attack(sent=b"\0"),
    "half a message": Attack(sent=struct.pack(">ihhi", 60_000, 18, 0, 1) + bytes(30_000)),
    "too large": Attack(sent=struct.pack(">ihhi", (1 << 31) - 1, 18, 0, 1) + bytes(30_000)),
    "command without a login": Attack(commands=True),
    "wrong role": Attack(commands=True, logs_in=True),
    "5,000 connections": Attack(connections=5_000, shakes_hands=False, sent=b"\x16\x03\x01"),
    "unread metadata": Attack(
        connections=500, shows=READER, logs_in=True, reads=False, sent=encode_request(_read_metadata(), 1, "x")
    ),
    "unread records": Attack(shows=READER, logs_in=True, reads=False, sent=encode_request(_fetch(), 1, "x")),
}
TABLE: Final = [
    pytest.param(port_name, attack_name, id=f"{port_name}-{attack_name}")
    for port_name, port in PORTS.items()
    for attack_name, attack in ATTACKS.items()
    if attack.is_possible_at(port)
]


def find_controller_port(port: str) -> str:
    """Return the port itself, or for one of a broker the first one of its controller."""
    if PORTS[port].process == "controller":
        return port
    certificates = PORTS[port].wants_certificates
    return next(
        name for name, each in PORTS.items() if (each.process, each.wants_certificates) == ("controller", certificates)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A controller and a registered broker that listen by each protocol, or by SSL for clients with certificates."""

    controller: ControllerProcess
    broker: PythonBroker
    authority: Path
    certificates: Mapping[str, CertificateFiles]
    epoch: int
    """The epoch of the broker."""

    def find_process(self, port: str) -> ControllerProcess | PythonBroker:
        return self.controller if PORTS[port].process == "controller" else self.broker

    def address(self, port: str) -> tuple[str, int]:
        return "127.0.0.1", self.find_process(port).ports[PORTS[port].protocol]

    def identity(self, port: str, shown: str | None) -> Identity:
        """Return the identity of a caller with a certificate and a login, if the port wants them."""
        protocol, certificate = PORTS[port].protocol, None
        if PORTS[port].wants_certificates and shown is not None:
            own = self.certificates[shown]
            certificate = Shown(certificate=own.certificate, key=own.key, both=own.store())
        return Identity(
            protocol=protocol,
            authority=self.authority if protocol.endswith("SSL") else None,
            certificate=certificate,
            login=LOGIN if PORTS[port].wants_logins else None,
        )

    def ask(self, port: str, source: str, request: RequestPayload, response_type: type[Any]) -> Any:
        """Return the answer to a request from an address, with a certificate or after a login."""
        identity = self.identity(port, CALLERS[source])
        with open_connection(self.address(port), identity=identity, timeout_s=SOON_S, source=source) as connection:
            return decode_response(response_type, answer_to(connection, encode_request(request, 1, "test")))

    def holdings(self, port: str) -> Holdings:
        return Holdings(process=self.find_process(port).process)

    def count_refusals(self, port: str, reason: str) -> float:
        """Return the number of refusals of the port's process for a reason."""
        return self.find_process(port).metric(f'kontroller_refused_total{{port="kafka",reason="{reason}"}}') or 0

    def assert_broker_is_served(self, port: str) -> None:
        """Ask the controller for producer ids as the broker, or the broker for records as another broker."""
        if PORTS[port].process == "controller":
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
        at_controller = find_controller_port(port)
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
        identity = self.identity(port, attack.shows)

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
        sent = _COMMANDS[PORTS[port].process] if attack.commands else attack.sent
        return connect_strangers(number, attack.connections, sent=sent, prepare=prepare, reads=attack.reads)


@pytest.fixture(scope="module")
def find_site(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Callable[[bool], Site]]:
    """Starts the processes of ports that want certificates, or of those that do not, when they are first needed."""
    with ExitStack() as stack:
        yield cache(lambda certificates: stack.enter_context(run_site(servers_folder, zookeeper, certificates)))


@pytest.fixture
def site(find_site: Callable[[bool], Site], port: str) -> Site:
    """The processes of a port."""
    return find_site(PORTS[port].wants_certificates)


@contextmanager
def run_site(servers_folder: RunFolder, zookeeper: ZooKeeper, wants_certificates: bool) -> Iterator[Site]:
    """Run the processes of ports until the end of the block."""
    name = "kafka-ports-with-certificates" if wants_certificates else "kafka-ports"
    files = servers_folder.data(f"{name}-files")
    authority = Authority(files)
    local = ("localhost", "IP:127.0.0.1")
    certificates = {each: authority.issue(each, *local) for each in ("controller", *CALLERS.values(), READER, STRANGER)}
    certificates[FOREIGN] = Authority(files / FOREIGN).issue("administrator")
    protected = _CERTIFICATES_AND_ACLS if wants_certificates else _LOGINS
    listeners = _SECURED if wants_certificates else _OPEN

    def make_settings(process: str) -> dict[str, object]:
        tls = {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(certificates[process].store()),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.certificate),
        }
        return {"properties": str(write_properties_file(files / f"{process}.properties", {**tls, **protected}))}

    raise_own_limit()
    connect = f"{zookeeper.connect}/{name}"
    with open_client(zookeeper.connect) as client:
        client.ensure_path(f"/{name}")
    with open_client(connect) as client:
        _write_many_topics(client)
        _write_acl(client)
        with (
            PythonBroker(
                servers_folder,
                connect,
                BROKER_ID,
                name=f"{name}-broker",
                settings=make_settings("broker"),
                listeners=listeners,
            ) as broker,
            ControllerProcess(
                servers_folder,
                connect,
                name=f"{name}-controller",
                settings={**make_settings("controller"), "admin_cidr": [f"{ADMINISTRATOR}/32"]},
                listeners=listeners,
            ) as controller,
        ):
            site = Site(
                controller=controller,
                broker=broker,
                authority=authority.certificate,
                certificates=certificates,
                epoch=client.exists(f"/brokers/ids/{BROKER_ID}").czxid,
            )
            for topic in (SERVED, LARGE):
                serve_topic(ClusterZnodes(client), topic, [[BROKER_ID]], {"retention.ms": "-1"})  # the records are old
            at_broker = "broker SSL with certificates" if wants_certificates else "broker SASL_SSL"
            for _ in range(8):
                wait_until(lambda: site.produce(at_broker, LARGE, bytes(_RECORDS_BYTES)), "it is led")
            yield site


def _write_acl(client: KazooClient) -> None:
    """Let the reader read all topics."""
    acl = {"principal": f"User:CN={READER}", "permissionType": "Allow", "operation": "Read", "host": "*"}
    client.create("/kafka-acl/Topic/*", json.dumps({"version": 1, "acls": [acl]}).encode(), makepath=True)


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


@pytest.mark.parametrize(("port", "attack"), TABLE)
def test_strangers_take_little_and_keep_nobody_out(site: Site, port: str, attack: str) -> None:
    site.ask(port, ADMINISTRATOR, _read_metadata(), MetadataResponse)  # the memory of a large answer is not returned
    name = f"{port}-{attack}".replace(" ", "-").replace(",", "")
    most = _MOST_DESCRIPTORS if ATTACKS[attack].is_admitted_by(PORTS[port]) else _MOST_BEFORE_LOGIN
    little = site.holdings(port).assert_little_is_taken(descriptors=most, log_bytes=_MOST_LOG_BYTES)
    reason = ATTACKS[attack].find_reason(PORTS[port])
    refusals = 0.0 if reason is None else site.count_refusals(port, reason)
    with little as check, site.attack(port, ATTACKS[attack]):
        site.assert_broker_is_served(port)
        if PORTS[port].knows_administrators:
            site.assert_administrator_is_served(port, name)
        check()
        if reason is not None:
            wait_until(lambda: site.count_refusals(port, reason) > refusals, "they are refused")
