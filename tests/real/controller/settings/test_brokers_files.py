"""The files of real brokers decide about settings that a controller was not given, and differences are named."""

import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreateTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i16, i32, i32Timedelta

from devcluster.building.java import kafka_home
from devcluster.building.toolchain import require
from devcluster.clients import tools
from devcluster.clients.requests import send_request
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.waiting.vocabulary import wait_until_logged

NOT_GIVEN = {"num_partitions": None, "default_replication_factor": None, "auto_leader_rebalance_enable": None}
POLICY = "create.topic.policy.class.name"
SOURCE = """
public class TestPolicy implements org.apache.kafka.server.policy.CreateTopicPolicy {
    public static void premain(String arguments) {}
    public void configure(java.util.Map<String, ?> configs) {}
    public void validate(RequestMetadata request) {}
    public void close() {}
}
"""


@pytest.fixture
def policy_env(tmp_path: Path) -> dict[str, str]:
    """The environment in which brokers find the class TestPolicy. Java adds an agent's jar to its class path."""
    (tmp_path / "TestPolicy.java").write_text(SOURCE)
    (tmp_path / "manifest").write_text("Premain-Class: TestPolicy\n")
    java = Path(require("java")).resolve().parent
    compile_it = [f"{java}/javac", "-cp", f"{kafka_home()}/libs/*", "TestPolicy.java"]
    subprocess.run(compile_it, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([f"{java}/jar", "cfm", "policy.jar", "manifest", "TestPolicy.class"], cwd=tmp_path, check=True)
    return {"JDK_JAVA_OPTIONS": f"-javaagent:{tmp_path / 'policy.jar'}"}


@pytest.fixture
def kafka(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str, policy_env: dict[str, str]
) -> Iterator[KafkaCluster]:
    """Three brokers. The file of the third lacks the default replication factor of the others."""
    properties = {"default.replication.factor": 3, "num.partitions": 6, POLICY: "TestPolicy"}
    with KafkaCluster(
        servers_folder, zookeeper, brokers=2, chroot=zookeeper_chroot, properties=properties, env=policy_env
    ) as cluster:
        cluster.add_broker(3, properties={"default.replication.factor": 1})
        cluster.start()
        yield cluster


def test_a_topic_without_numbers_gets_those_of_the_files_and_what_differs_is_named(
    servers_folder: RunFolder, kafka: KafkaCluster
) -> None:
    factor = "default.replication.factor is 3 at 1, 2, 1000; 1 at 3"
    policy = f"{POLICY} is TestPolicy at 1, 2, 3; not set at 1000"
    with (
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name="reading", settings=NOT_GIVEN) as controller,
        open_client(kafka.zookeeper_connect) as client,
    ):
        created = tools.run_tool(
            tools.TOPICS, "--bootstrap-server", kafka.bootstrap_servers, "--create", "--topic", "orders"
        )
        assert created.returncode == 0, created.stdout + created.stderr
        partitions = ClusterZnodes(client).partitions("orders")
        assert [len(replicas) for replicas in partitions.values()] == [3] * 6
        # A difference is logged with the first answer that shows it, so the log may lack some of the brokers.
        for difference in ("; 1 at 3", f"{POLICY} is "):
            wait_until_logged(controller.process, difference)
        checked = run_command("check", "cluster", "--bootstrap-server", kafka.bootstrap_servers)
        assert checked.returncode == 0, checked.stderr
        assert {f"settings differ: {each}" for each in (factor, policy)} <= set(checked.stdout.splitlines())
        assert controller.metric(f'kontroller_differing_settings{{setting="{POLICY}"}}') == 2
        assert controller.metric("kontroller_brokers_with_unknown_settings") == 0


def test_without_a_broker_the_numbers_are_unknown_and_a_topic_that_needs_them_is_refused(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str
) -> None:
    with KafkaCluster(servers_folder, zookeeper, brokers=0, chroot=zookeeper_chroot) as kafka:
        kafka.start()
        with ControllerProcess(servers_folder, kafka.zookeeper_connect, name="alone", settings=NOT_GIVEN) as controller:
            topic = CreatableTopic(
                name=TopicName("orders"), num_partitions=i32(1), replication_factor=i16(-1), assignments=(), configs=()
            )
            timeout = i32Timedelta.parse(timedelta(seconds=10))
            request = CreateTopicsRequest(topics=(topic,), timeout=timeout, validate_only=False)
            response: CreateTopicsResponse = send_request(("127.0.0.1", controller.port), request)
            (result,) = response.topics
            assert result.error_code is ErrorCode.invalid_replication_factor
            assert "no broker has returned default.replication.factor yet" in str(result.error_message)
