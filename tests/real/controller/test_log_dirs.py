"""A real broker loses one of two log directories, and later gets it back; a real configuration changes."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # documented there, only not re-exported for mypy
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import TopicName

from devcluster.clients import tools
from devcluster.clients.requests import send_request
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import Broker, KafkaCluster, lose_directory
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import (
    serve_topic,
    wait_until_empty,
    wait_until_gone,
    wait_until_led,
    wait_until_metric,
)

TOPICS = ("one", "two", "three", "four")
DEADLINE_S = 90
RECOVERING = 1


@pytest.fixture
def disks(servers_folder: RunFolder, zookeeper_chroot: str) -> list[Path]:
    """The log directories of broker 2."""
    return [servers_folder.data(f"{zookeeper_chroot.strip('/')}-disk-{number}") for number in (1, 2)]


@pytest.fixture
def kafka(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str, disks: list[Path]
) -> Iterator[KafkaCluster]:
    """Two brokers; the second has two log directories, and writes its checkpoints often enough to notice a loss."""
    with KafkaCluster(servers_folder, zookeeper, brokers=1, chroot=zookeeper_chroot) as cluster:
        properties = {"log.dirs": ",".join(map(str, disks)), "log.flush.offset.checkpoint.interval.ms": 500}
        cluster.add_broker(2, properties=properties)
        cluster.start()
        yield cluster


@pytest.fixture
def controller(servers_folder: RunFolder, kafka: KafkaCluster) -> Iterator[ControllerProcess]:
    """Our controller, which moves leaders to their preferred replicas every other second."""
    settings = {"auto_leader_rebalance_enable": True, "leader_imbalance_check_interval_seconds": 2}
    with ControllerProcess(
        servers_folder, kafka.zookeeper_connect, name="disk-controller", settings=settings
    ) as process:
        yield process
        assert "unexpected error" not in process.process.log_path.read_text(errors="replace")


@pytest.fixture
def znodes(kafka: KafkaCluster, controller: ControllerProcess) -> Iterator[ClusterZnodes]:
    with open_client(kafka.zookeeper_connect) as client:
        yield ClusterZnodes(client)


def folder_of(disks: list[Path], topic: str) -> Path:
    """Return the log directory in which broker 2 has a topic."""

    def find_folders() -> list[Path]:
        return [folder for folder in disks if (folder / f"{topic}-0").exists()]

    wait_until(lambda: bool(find_folders()), f"broker 2 has a log of {topic}")
    return find_folders()[0]


def metadata(broker: Broker, *topics: str) -> MetadataResponse:
    """Return a broker's metadata for clients."""
    asked = tuple(MetadataRequestTopic(topic_id=None, name=TopicName(topic)) for topic in topics)
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False, include_topic_authorized_operations=False)
    response: MetadataResponse = send_request(("127.0.0.1", broker.port), request)
    return response


def offline_replicas(broker: Broker, topic: str) -> list[int]:
    """Return the offline replicas of partition 0 in a broker's metadata."""
    answer = metadata(broker, topic)
    return [int(replica) for partition in answer.topics[0].partitions for replica in partition.offline_replicas]


def test_the_partitions_of_a_lost_directory_move_on_and_return_with_it(
    disks: list[Path], kafka: KafkaCluster, controller: ControllerProcess, znodes: ClusterZnodes
) -> None:
    for topic in TOPICS:
        znodes.create_topic(topic, [[2, 1]])
        folder_of(disks, topic)
    lost = folder_of(disks, "one")
    hit = [topic for topic in TOPICS if folder_of(disks, topic) == lost]
    spared = [topic for topic in TOPICS if topic not in hit]
    assert (len(hit), len(spared)) == (2, 2), "a broker spreads its partitions over its directories"
    doomed = hit[1]
    wait_until(lambda: all(znodes.is_served(topic, [0]) for topic in TOPICS), "all served")

    lose_directory(lost)
    wait_until(
        lambda: all((znodes.leader(topic, 0), znodes.isr(topic, 0)) == (1, [1]) for topic in hit),
        "the other broker leads what is lost, alone",
    )
    assert {(znodes.leader(topic, 0), *znodes.isr(topic, 0)) for topic in spared} == {(2, 1, 2)}
    wait_until(lambda: offline_replicas(kafka.broker(1), "one") == [2], "clients learn of it")
    wait_until_empty(znodes, "/log_dir_event_notification")

    controller.restart_whole()
    wait_until_metric(controller, "kontroller_offline_replicas", len(hit))
    assert {znodes.leader(topic, 0) for topic in hit} == {1}
    assert {znodes.leader(topic, 0) for topic in spared} == {2}
    assert offline_replicas(kafka.broker(1), spared[0]) == []

    serve_topic(znodes, "new", [[2, 1]])

    znodes.mark_for_deletion(doomed)
    wait_until_metric(controller, "kontroller_topics_ineligible_to_delete", 1)
    assert znodes.partitions(doomed)

    kafka.broker(2).kill()
    lost.unlink()
    lost.mkdir()
    kafka.broker(2).start()
    wait_until_gone(znodes, f"/brokers/topics/{doomed}")
    kept = ("one", *spared, "new")
    wait_until(lambda: all(znodes.is_served(topic, [0]) for topic in kept), "every replica is in sync")
    wait_until(
        lambda: all(znodes.leader(topic, 0) == 2 for topic in kept),
        "the leaders go back by themselves",
    )
    wait_until(lambda: offline_replicas(kafka.broker(1), "one") == [], "clients learn that no replica is lost")


def test_what_waits_for_its_replicas_gets_an_unclean_leader_when_the_configuration_changes(
    kafka: KafkaCluster, controller: ControllerProcess, znodes: ClusterZnodes
) -> None:
    waiting = ("by-client", "by-default", "seen")
    for topic in waiting:
        znodes.create_topic(topic, [[2, 1]])
    wait_until(lambda: all(znodes.is_served(topic, [0]) for topic in waiting), "all served")
    kafka.broker(1).stop()
    wait_until(lambda: all(znodes.isr(topic, 0) == [2] for topic in waiting), "2 alone is in sync")
    kafka.broker(2).kill()
    wait_until(lambda: all(znodes.leader(topic, 0) == -1 for topic in waiting), "nobody leads")
    kafka.broker(1).start()
    assert {(znodes.leader(topic, 0), *znodes.isr(topic, 0)) for topic in waiting} == {(-1, 2)}
    assert controller.metric("kontroller_unclean_leader_elections_total") == 0

    wait_until(  # an earlier request of a client would delay its next one for long
        lambda: metadata(kafka.broker(1)).controller_id == controller.controller_id,
        "1 knows the controller",
    )
    allow_unclean_election(kafka.broker(1), "by-client")
    wait_until_led(znodes, "by-client", 1)
    assert znodes.isr("by-client", 0) == [1]
    assert {znodes.leader(topic, 0) for topic in ("by-default", "seen")} == {-1}

    kafka.broker(1).process.send_signal(signal.SIGSTOP)  # so that it does not report at once that it has recovered
    try:
        znodes.change_config("seen", {"unclean.leader.election.enable": "true"})
        wait_until(lambda: znodes.state("seen", 0).get("leader_recovery_state") == RECOVERING, "it is to recover")
    finally:
        kafka.broker(1).process.send_signal(signal.SIGCONT)

    altered = tools.run_tool(
        tools.CONFIGS,
        *("--bootstrap-server", kafka.broker(1).address, "--alter", "--entity-type", "brokers", "--entity-default"),
        *("--add-config", "unclean.leader.election.enable=true"),
        timeout_s=DEADLINE_S,
    )
    assert altered.returncode == 0, altered.stdout + altered.stderr
    wait_until_led(znodes, "by-default", 1)
    wait_until(
        lambda: (controller.metric("kontroller_unclean_leader_elections_total") or 0) >= len(waiting),
        "the elections are counted",
    )

    kafka.broker(2).start()
    wait_until(lambda: all(znodes.is_served(topic, [0]) for topic in waiting), "2 is in sync")
    recovered = {znodes.state(topic, 0).get("leader_recovery_state", 0) for topic in waiting}
    assert recovered == {0}, "the leaders have recovered"


def allow_unclean_election(broker: Broker, topic: str) -> None:
    """Set the configuration as a program does, by a request to a broker."""
    entry = ConfigEntry("unclean.leader.election.enable", "true", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": broker.address})
    for done in client.incremental_alter_configs([resource], request_timeout=DEADLINE_S).values():
        done.result(timeout=DEADLINE_S)
