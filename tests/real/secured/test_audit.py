"""The audit of a real controller: alice and bob log in, change things or are refused, and both are told apart."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from kio.schema.alter_client_quotas.v1.request import AlterClientQuotasRequest, EntityData, EntryData, OpData
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.types import TopicName
from kio.static.primitive import f64, i8, i16, i32, i32Timedelta

from controller_core.journal.changes import Kind
from controller_core.journal.reader import Record, read
from controller_core.model.authorization.acls import Entry, Operation, Pattern, ResourceType
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import DEFAULT_CONTROLLER_ID, ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import ADMIN, ALICE, BOB, SecuredKafka
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import wait_until
from kontroller.history.topic_changes import list_changes
from tests.real.secured.test_authorizer import LISTENERS, Asker, Node

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SOON: Final = i32Timedelta.parse(timedelta(seconds=20))
MINE: Final = TopicName("mine")
ALICE_HERE, BOB_THERE = Asker(ALICE, "127.0.0.2"), Asker(BOB, "127.0.0.3")
NOBODY: Final = Asker(None, "127.0.0.4")
MAY: Final = (Operation.CREATE, Operation.ALTER, Operation.ALTER_CONFIGS, Operation.DELETE, Operation.DESCRIBE)
CREATE: Final = CreateTopicsRequest(
    topics=(CreatableTopic(name=MINE, num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()),),
    timeout=SOON,
    validate_only=False,
)
GROW: Final = CreatePartitionsRequest(
    topics=(CreatePartitionsTopic(name=MINE, count=i32(3), assignments=None),), timeout=SOON, validate_only=False
)
DELETE: Final = DeleteTopicsRequest(topics=(DeleteTopicState(name=MINE, topic_id=None),), timeout=SOON)


def retain(milliseconds: int) -> IncrementalAlterConfigsRequest:
    config = AlterableConfig(name="retention.ms", config_operation=i8(0), value=str(milliseconds))
    topic = AlterConfigsResource(resource_type=i8(2), resource_name=MINE, configs=(config,))
    return IncrementalAlterConfigsRequest(resources=(topic,), validate_only=False)


def read_audit(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def read_requests(journal: Path) -> list[dict[str, Any]]:
    lines = [entry.line for entry in read(journal) if isinstance(entry, Record)]
    return [line.request for line in lines if line.kind == Kind.REQUEST and line.request is not None]


def summarize(records: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return [tuple(record[name] for name in ("principal", "address", "api", "outcome")) for record in records]


@pytest.fixture
def secured_node(servers_folder: RunFolder, zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Node]:
    """A cluster with ACLs. Its own, because its controller writes an audit."""
    with zookeeper.client() as maker:
        maker.ensure_path("/audited")
    kafka = SecuredKafka(servers_folder, zookeeper, listeners=LISTENERS, name="audited", authorizes=True, brokers=1)
    file = kafka.write_properties(
        authorizer_class_name="kafka.security.authorizer.AclAuthorizer",
        super_users=f"User:{ADMIN}",
        sasl_enabled_mechanisms="PLAIN,SCRAM-SHA-512",
    )
    settings = {
        "properties": str(file),
        "delete_topic_enable": True,
        "audit_file": str(tmp_path / "audit.jsonl"),
        "journal_directory": str(tmp_path / "journal"),
    }
    controller = ControllerProcess(
        servers_folder, kafka.zookeeper_connect, name="audited-controller", settings=settings, listeners=LISTENERS
    )
    with controller, zookeeper.client("/audited") as client:
        kafka.start()
        yield Node(controller.ports, DEFAULT_CONTROLLER_ID, client)
        kafka.close()


def test_who_created_altered_and_deleted_a_topic_and_who_was_refused_is_recorded(
    secured_node: Node, tmp_path: Path
) -> None:
    node = secured_node
    allowed = frozenset(Entry(True, f"User:{ALICE}", operation, "*") for operation in MAY)
    node.write({Pattern(ResourceType.TOPIC, MINE): allowed})
    wait_until(
        lambda: node.ask(CREATE, ALICE_HERE).topics[0].error_code is ErrorCode.topic_already_exists,
        "alice has created her topic",
    )
    wait_until(
        lambda: node.ask(retain(1000), ALICE_HERE).responses[0].error_code is ErrorCode.none,
        "a broker knows the topic, and alters it for the controller",
    )
    assert node.ask(retain(2000), ALICE_HERE).responses[0].error_code is ErrorCode.none
    assert node.ask(retain(3000), BOB_THERE).responses[0].error_code is ErrorCode.topic_authorization_failed
    for _ in range(20):
        assert node.ask(DELETE, BOB_THERE).responses[0].error_code is ErrorCode.topic_authorization_failed
    assert node.ask(GROW, ALICE_HERE).results[0].error_code is ErrorCode.none
    assert node.ask(DELETE, ALICE_HERE).responses[0].error_code is ErrorCode.none
    alice, bob = ("User:alice", "127.0.0.2"), ("User:bob", "127.0.0.3")
    expected = [
        (*alice, "CreateTopics", "done"),
        (*alice, "IncrementalAlterConfigs", "done"),
        (*alice, "IncrementalAlterConfigs", "done"),
        (*bob, "IncrementalAlterConfigs", "refused"),
        (*alice, "CreatePartitions", "done"),
        (*alice, "DeleteTopics", "done"),
    ]

    def is_recorded(records: list[dict[str, Any]]) -> bool:
        return [each for each in summarize(records) if each[3] in ("done", "refused")][-6:] == expected

    file, journal = tmp_path / "audit.jsonl", tmp_path / "journal"
    wait_until(lambda: is_recorded(read_audit(file)), "the audit file has each change, and bob's refusals once")
    wait_until(lambda: is_recorded(read_requests(journal)), "the journal has them, too")
    named = {
        (change.principal, change.address) for change in list_changes(MINE, journal, problems=[]) if change.principal
    }
    assert named == {alice, bob}
    by_api = {record["api"]: record for record in read_audit(file)}
    (grown,) = by_api["CreatePartitions"]["resources"]
    assert (grown["before"], grown["after"]) == ({"partitions": 1, "replication_factor": 1}, {"partitions": 3})
    (deleted,) = by_api["DeleteTopics"]["resources"]
    assert (deleted["name"], deleted["before"]["partitions"]) == (MINE, 3)
    altered = [each["resources"][0] for each in read_audit(file) if each["api"] == "IncrementalAlterConfigs"]
    after = [each["after"]["configs"]["retention.ms"] for each in altered]
    assert after[-3:] == ["1000", "2000", "3000"], "of which the last was refused"


def test_a_request_that_is_relayed_is_recorded_with_the_client_that_the_broker_does_not_see(
    servers_folder: RunFolder, zookeeper: ZooKeeper, tmp_path: Path
) -> None:
    file = tmp_path / "audit.jsonl"
    settings = {"audit_file": str(file), "admin_cidr": [f"{NOBODY.host}/32"]}
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=1, chroot="/audited-relay", name="audited-relay") as kafka,
        ControllerProcess(
            servers_folder, kafka.zookeeper_connect, name="audited-relay-controller", settings=settings
        ) as controller,
        zookeeper.client("/audited-relay") as client,
    ):
        node = Node({"OPEN": controller.port}, DEFAULT_CONTROLLER_ID, client)
        quota = EntryData(
            entity=(EntityData(entity_type="client-id", entity_name="batch"),),
            ops=(OpData(key="consumer_byte_rate", value=f64(1e6), remove=False),),
        )
        answer = node.ask(AlterClientQuotasRequest(entries=(quota,), validate_only=False), NOBODY)
        assert answer.entries[0].error_code is ErrorCode.none
        created = node.ask(CREATE, Asker(None, "127.0.0.5"))
        assert created.topics[0].error_code is ErrorCode.cluster_authorization_failed
        wait_until(lambda: len(read_audit(file)) == 2, "both are recorded")
    assert summarize(read_audit(file)) == [
        ("User:ANONYMOUS", "127.0.0.4", "AlterClientQuotas", "done"),
        ("User:ANONYMOUS", "127.0.0.5", "CreateTopics", "refused"),
    ]
    (resource,) = read_audit(file)[0]["resources"]
    assert (resource["name"], resource["after"]) == ("client-id=batch", {"consumer_byte_rate": 1e6})
