"""Topic rules on real servers: stock tools and clients at our controller, and KafkaTopics with and without ZooKeeper.

The tests start clusters of their own, because their controller and operators have rules.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # documented there, only not re-exported for mypy
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from devcluster.clients.tools import CONSOLE_CONSUMER, CONSOLE_PRODUCER, TOPICS, run_tool
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.operator.operated import Objects, operate_namespace, run_operator
from tests.real.operator.witnesses import where

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

RULES = [
    {"expression": "topic.replicationFactor >= 2", "message": "use at least 2 replicas"},
    {"expression": "topic.name.matches('^[a-z]+[.][a-z]+$')", "messageExpression": "topic.name + ' names no team'"},
    {"expression": "old == null || topic.partitions <= 2 * old.partitions", "message": "double the partitions at most"},
    {"expression": "topic.configs[?'retention.ms'].orValue('0') != '-1'", "message": "delete old data"},
]


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    path.write_text(yaml.safe_dump({"rules": RULES}))
    return path


@pytest.fixture(scope="module")
def with_zookeeper(servers_folder: RunFolder, zookeeper: ZooKeeper, rules: Path) -> Iterator[KafkaCluster]:
    """Two brokers under our controller, which has the rules."""
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=2, chroot="/ruled") as kafka,
        ControllerProcess(
            servers_folder,
            kafka.zookeeper_connect,
            name="ruled-controller",
            settings={"topic_rules": str(rules), "default_replication_factor": 2},
        ),
    ):
        yield kafka


def run_topics(kafka: KafkaCluster, *arguments: str) -> str:
    """Return what kafka-topics prints."""
    done = run_tool(TOPICS, "--bootstrap-server", kafka.bootstrap_servers, *arguments)
    return done.stdout + done.stderr


def create(kafka: KafkaCluster, topic: str, *, replicas: int = 2, partitions: int = 1) -> str:
    numbers = ("--partitions", str(partitions), "--replication-factor", str(replicas))
    return run_topics(kafka, "--create", "--topic", topic, *numbers)


def test_kafka_topics_gets_the_message_of_the_rule(with_zookeeper: KafkaCluster) -> None:
    refused = create(with_zookeeper, "shop.single", replicas=1)
    assert "use at least 2 replicas" in refused
    assert "PolicyViolationException" in refused
    assert "orders names no team" in create(with_zookeeper, "orders")
    assert "Created topic shop.orders." in create(with_zookeeper, "shop.orders")
    assert "Created topic shop.default." in run_topics(with_zookeeper, "--create", "--topic", "shop.default")
    assert "already exists" in create(with_zookeeper, "shop.orders", replicas=1)
    grown = run_topics(with_zookeeper, "--alter", "--topic", "shop.orders", "--partitions", "3")
    assert "double the partitions at most" in grown
    assert "Error" not in run_topics(with_zookeeper, "--alter", "--topic", "shop.orders", "--partitions", "2")
    wait_until(lambda: {"shop.orders", "shop.default"} <= list_topics(with_zookeeper), "the brokers know the topics")
    assert not {"shop.single", "orders"} & list_topics(with_zookeeper)


def test_librdkafka_which_asks_the_controller_cannot_break_a_rule_by_an_alteration(
    with_zookeeper: KafkaCluster,
) -> None:
    create(with_zookeeper, "shop.altered")
    admin = AdminClient({"bootstrap.servers": with_zookeeper.bootstrap_servers})

    def alter(value: str) -> None:
        entry = ConfigEntry("retention.ms", value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, "shop.altered", incremental_configs=[entry])
        (done,) = admin.incremental_alter_configs([resource], request_timeout=30).values()
        done.result()

    alter("60000")
    with pytest.raises(KafkaException, match="delete old data"):
        alter("-1")
    (read,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "shop.altered")], request_timeout=30).values()
    assert read.result()["retention.ms"].value == "60000"


def test_groups_work_although_a_rule_would_refuse_the_names_of_internal_topics(with_zookeeper: KafkaCluster) -> None:
    create(with_zookeeper, "shop.read")
    servers = ("--bootstrap-server", with_zookeeper.bootstrap_servers, "--topic", "shop.read")
    run_tool(CONSOLE_PRODUCER, *servers, stdin="hello\n")
    read = run_tool(
        CONSOLE_CONSUMER, *servers, "--group", "any", "--from-beginning", "--max-messages", "1", "--timeout-ms", "45000"
    )
    assert read.stdout == "hello\n", read.stderr


@pytest.fixture(scope="module")
def without_zookeeper(servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Two brokers of Kafka 4 under Kafka's own controller, which knows no rules."""
    with KRaftCluster(servers_folder, brokers=2, controllers=1, name="ruled-kraft") as kafka:
        yield kafka


@pytest.mark.parametrize("kind", ["with_zookeeper", "without_zookeeper"])
def test_a_kafkatopic_that_breaks_a_rule_waits_until_it_is_corrected(
    kind: str, request: pytest.FixtureRequest, servers_folder: RunFolder, kubernetes_api: KubernetesCluster, rules: Path
) -> None:
    kafka = request.getfixturevalue(kind)
    env = {"KONTROLLER_TOPIC_RULES": str(rules)}
    with (
        operate_namespace(kubernetes_api, **where(kafka)) as objects,
        run_operator(servers_folder, kubernetes_api, env=env),
    ):
        wrong = {"topicName": "shop.declared", "partitions": 1, "replicationFactor": 1}
        objects.apply("KafkaTopic", "declared", wrong)
        assert refusal(objects) == "a rule for topics refuses this: use at least 2 replicas"
        assert "shop.declared" not in list_topics(kafka)
        objects.wait_for_event("declared", "PolicyViolation")

        right = {**wrong, "replicationFactor": 2}
        objects.apply("KafkaTopic", "declared", right)
        objects.wait_ready("kafkatopic", "declared")
        wait_until(lambda: "shop.declared" in list_topics(kafka), "the brokers know the topic")

        objects.apply("KafkaTopic", "declared", {**right, "partitions": 2, "config": {"retention.ms": "-1"}})
        assert refusal(objects) == "a rule for topics refuses this: delete old data"
        assert objects.status("kafkatopic", "declared")["counts"]["partitions"] == 1
        objects.apply("KafkaTopic", "declared", {**right, "partitions": 2})
        objects.wait_ready("kafkatopic", "declared")


def refusal(objects: Objects) -> str:
    """Return the message of the object, once a rule refuses it."""
    found = objects.wait_ready("kafkatopic", "declared", "False", "PolicyViolation")
    (ready,) = (each for each in found["status"]["conditions"] if each["type"] == "Ready")
    return str(ready["message"])


def list_topics(kafka: KafkaCluster | KRaftCluster) -> set[str]:
    return set(AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).list_topics(timeout=60).topics)
