"""A stranger who takes the controller for a broker: nothing that changes the cluster reaches a broker through it.

One broker and our controller, with the relay and without. The broker has no authorizer, so it obeys everybody whose
request reaches it. An administrator's requests show that the stranger's were well-formed.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from kio.index import KioIndexError, load_request_schema
from kio.schema.alter_client_quotas.v1 import request as alter_client_quotas
from kio.schema.alter_configs.v2 import request as alter_configs
from kio.schema.alter_user_scram_credentials.v0 import request as alter_scram
from kio.schema.create_acls.v3 import request as create_acls
from kio.schema.create_partitions.v3 import request as create_partitions
from kio.schema.create_topics.v7 import request as create_topics
from kio.schema.delete_groups.v2 import request as delete_groups
from kio.schema.delete_records.v2 import request as delete_records
from kio.schema.delete_topics.v6 import request as delete_topics
from kio.schema.fetch.v11 import request as fetch
from kio.schema.fetch.v16 import request as fetch_16
from kio.schema.incremental_alter_configs.v1 import request as incremental_alter_configs
from kio.schema.metadata.v12 import request as metadata
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import GroupId, TopicName
from kio.static.primitive import f64, i8, i16, i32, i32Timedelta, i64
from kio.static.protocol import RequestPayload

from controller_core.wire.api_table import API_TABLE, Purpose
from controller_core.wire.codecs.frames import Unencodable, encode_request, make_frame
from controller_core.wire.codecs.versions import empty
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic, wait_until_served
from tests.real.controller.faults.test_strangers import STRANGER, Connection

TOPIC, MADE, RECORDS = TopicName("owned"), TopicName("made"), 5
ADMINISTRATOR: Final = "127.0.0.1"
TOPICS, BROKERS = i8(2), i8(4)
SOON = i32Timedelta.parse(timedelta(seconds=10))
CHANGING: Final = (
    Purpose.ADMINISTERS, Purpose.ALTERS_CREDENTIALS, Purpose.REPORTS, Purpose.COMMANDS, Purpose.JOINS_SERVERS,
)  # fmt: skip
STATE: Final = ("/config", "/brokers/topics", "/kafka-acl", "/kafka-acl-extended", "/delegation_token", "/admin")
REFUSED: Final = struct.pack(">h", 31)
"""CLUSTER_AUTHORIZATION_FAILED"""


def unclean(module: Any, kind: int, name: str, **operation: Any) -> Any:
    """Return the resource that would let the topics lose records."""
    settings = {"unclean.leader.election.enable": "true", "retention.ms": "1000"}
    if kind == BROKERS:
        settings = {"unclean.leader.election.enable": "true", "log.retention.ms": "1000"}
    configs = tuple(module.AlterableConfig(name=key, value=value, **operation) for key, value in settings.items())
    return module.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def alter(kind: int, name: str) -> RequestPayload:
    resource = unclean(alter_configs, kind, name)
    return alter_configs.AlterConfigsRequest(resources=(resource,), validate_only=False)


def alter_incrementally(kind: int, name: str) -> RequestPayload:
    resource = unclean(incremental_alter_configs, kind, name, config_operation=i8(0))
    return incremental_alter_configs.IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False)


DELETE_RECORDS: Final = delete_records.DeleteRecordsRequest(
    topics=(
        delete_records.DeleteRecordsTopic(
            name=TOPIC,
            partitions=(delete_records.DeleteRecordsPartition(partition_index=i32(0), offset=i64(RECORDS)),),
        ),
    ),
    timeout=SOON,
)
ALTER_CLIENT_QUOTAS: Final = alter_client_quotas.AlterClientQuotasRequest(
    entries=(
        alter_client_quotas.EntryData(
            entity=(alter_client_quotas.EntityData(entity_type="client-id", entity_name="victim"),),
            ops=(alter_client_quotas.OpData(key="producer_byte_rate", value=f64(1.0), remove=False),),
        ),
    ),
    validate_only=False,
)
MAKE_BY_METADATA: Final = metadata.MetadataRequest(
    topics=(metadata.MetadataRequestTopic(topic_id=None, name=MADE),),
    allow_auto_topic_creation=True,
    include_topic_authorized_operations=False,
)
GIVEN: Final[tuple[RequestPayload, ...]] = (
    alter(TOPICS, TOPIC),
    alter(BROKERS, ""),
    alter(BROKERS, "1"),
    alter_incrementally(TOPICS, TOPIC),
    alter_incrementally(BROKERS, ""),
    alter_incrementally(BROKERS, "1"),
    ALTER_CLIENT_QUOTAS,
    DELETE_RECORDS,
    create_topics.CreateTopicsRequest(
        topics=(
            create_topics.CreatableTopic(
                name=MADE, num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
            ),
        ),
        timeout=SOON,
    ),
    delete_topics.DeleteTopicsRequest(
        topics=(delete_topics.DeleteTopicState(name=TOPIC, topic_id=None),), timeout=SOON
    ),
    create_partitions.CreatePartitionsRequest(
        topics=(create_partitions.CreatePartitionsTopic(name=TOPIC, count=i32(2), assignments=None),),
        timeout=SOON,
        validate_only=False,
    ),
    create_acls.CreateAclsRequest(
        creations=(
            create_acls.AclCreation(
                resource_type=i8(4), resource_name="kafka-cluster", principal="User:mallory", host="*",
                operation=i8(2), permission_type=i8(3),
            ),
        )
    ),
    delete_groups.DeleteGroupsRequest(groups_names=(GroupId("group"),)),
    alter_scram.AlterUserScramCredentialsRequest(
        deletions=(),
        upsertions=(
            alter_scram.ScramCredentialUpsertion(
                name="admin", mechanism=i8(1), iterations=i32(8192), salt=b"salt", salted_password=b"stolen"
            ),
        ),
    ),
)  # fmt: skip
"""Requests that change something if a broker or the controller obeys them."""


@dataclass(kw_only=True)
class Site:
    """A broker, our controller, and what the broker has."""

    kafka: KafkaCluster
    controller: ControllerProcess
    znodes: ClusterZnodes
    is_relay: bool

    def read_state(self) -> dict[str, object]:
        """Return the znodes that administrators change, and the offsets of the topic's records."""
        found: dict[str, object] = {}
        for path in STATE:
            self._collect(path, found)
        consumer = Consumer({"bootstrap.servers": self.kafka.bootstrap_servers, "group.id": "reader"})
        found["records"] = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=30)
        consumer.close()
        return found

    def _collect(self, path: str, found: dict[str, object]) -> None:
        if self.znodes.client.exists(path):
            found[path] = self.znodes.client.get(path)[0]
            for child in self.znodes.client.get_children(path):
                self._collect(f"{path}/{child}", found)

    def send(self, frame: bytes, address: str) -> bytes | None:
        connection = Connection(self.controller.port, address)
        try:
            return connection.send(frame)
        finally:
            connection.close()


@pytest.fixture(scope="module", params=[True, False], ids=["relay", "no-relay"])
def site(request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Site]:
    """A cluster of its own, because its controller has another relay than that of the other tests."""
    is_relay: bool = request.param
    chroot = f"/strangers-{'relay' if is_relay else 'alone'}"
    properties = {"auto.create.topics.enable": "true", "offsets.topic.num.partitions": 1}
    settings = {"admin_cidr": f"{ADMINISTRATOR}/32", "relay": is_relay}
    with KafkaCluster(servers_folder, zookeeper, brokers=1, chroot=chroot, properties=properties) as kafka:
        connect = kafka.zookeeper_connect
        with (
            ControllerProcess(servers_folder, connect, name=chroot.strip("/"), settings=settings) as controller,
            open_client(connect) as client,
        ):
            site = Site(kafka=kafka, controller=controller, znodes=ClusterZnodes(client), is_relay=is_relay)
            serve_topic(site.znodes, TOPIC, [[1]])
            producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
            for number in range(RECORDS):
                producer.produce(TOPIC, str(number).encode())
            assert producer.flush(60) == 0
            site.read_state()  # its consumer lets the broker create the topic of offsets
            wait_until_served(site.znodes, "__consumer_offsets")
            yield site


def encode(request: RequestPayload, client_id: str = "stranger") -> bytes:
    return encode_request(request, 5, client_id)


def make_empty() -> Iterator[bytes]:
    """Yield requests without content of all APIs that change something, or headers of unknown messages."""
    for row in API_TABLE:
        for version in range(8) if row.purpose in CHANGING else ():
            try:
                yield encode(empty(load_request_schema(row.key, version)))
            except (KioIndexError, TypeError, Unencodable):
                yield make_frame(struct.pack(">hhih", row.key, version, 5, -1) + b"\0")


def make_disguises() -> tuple[bytes, ...]:
    """Return requests that a broker takes for those of a follower, of another broker, or of a tool."""
    consumers: Any = {"max_wait": SOON, "min_bytes": i32(0), "topics": (), "forgotten_topics_data": ()}
    tagged = fetch_16.ReplicaState(replica_id=WireBrokerId(2))
    return (
        encode(fetch.FetchRequest(**consumers, replica_id=WireBrokerId(2), rack_id="")),
        encode(fetch_16.FetchRequest(**consumers, replica_state=tagged)),
        encode(empty(load_request_schema(0, 9)), "__admin_client"),
        encode(empty(load_request_schema(24, 4))),
    )


def test_a_stranger_changes_nothing_through_the_controller(site: Site) -> None:
    before = site.read_state()
    for request in GIVEN:
        answer = site.send(encode(request), STRANGER)
        assert answer is None or REFUSED in answer, f"{type(request).__name__} was obeyed: {answer!r}"
    for frame in make_disguises():
        assert site.send(frame, STRANGER) is None
    for frame in (*make_empty(), encode(MAKE_BY_METADATA)):
        site.send(frame, STRANGER)
    serve_topic(site.znodes, "after", [[1]])  # whatever was obeyed before is done now
    assert {path: value for path, value in site.read_state().items() if "/after" not in path} == before


def test_an_administrator_changes_the_same_as_far_as_there_is_a_relay(site: Site) -> None:
    before = site.read_state()
    assert site.send(encode(alter(TOPICS, TOPIC)), ADMINISTRATOR) is not None
    assert site.read_state()[f"/config/topics/{TOPIC}"] != before[f"/config/topics/{TOPIC}"], "with a relay and without"
    for request in (ALTER_CLIENT_QUOTAS, DELETE_RECORDS):
        assert (site.send(encode(request), ADMINISTRATOR) is not None) is site.is_relay
    changed = site.read_state()
    assert ("/config/clients/victim" in changed) is site.is_relay
    assert changed["records"] == ((RECORDS, RECORDS) if site.is_relay else (0, RECORDS))
    site.send(encode(MAKE_BY_METADATA), ADMINISTRATOR)
    if site.is_relay:
        wait_until(lambda: bool(site.znodes.partitions(MADE)), "the broker has created the topic")
