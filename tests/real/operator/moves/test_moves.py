"""Moves of several objects on real servers: disjoint moves run at the same time, and overlapping partitions wait."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from controller_core.client.reassigning.reassignments import alter_reassignments
from controller_core.client.transport.request_client import RequestClient, parse_addresses
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_operator.kafka.requests.moves import REQUEST_TIMEOUT
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.vocabulary import serve_topic
from tests.real.operator.operated import RECORD_BYTES, Objects, fill, operate_namespace, run_operator, slow_down

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

KIND = "partitionreassignment"
SLOW, FAST = {"bytesPerSecond": RECORD_BYTES}, {"bytesPerSecond": 10**9}


@pytest.fixture(params=["Kafka", "Kontroller"])
def kafka(request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[KafkaCluster]:
    """Three brokers under Kafka's own controller, or under ours."""
    chroot = f"/moves-by-{request.param}".lower()
    with ExitStack() as stack:
        cluster = KafkaCluster(servers_folder, zookeeper, brokers=3, chroot=chroot)
        with zookeeper.client() as client:
            client.ensure_path(chroot)
        if request.param == "Kontroller":
            stack.enter_context(ControllerProcess(servers_folder, cluster.zookeeper_connect, name="moves-controller"))
        yield stack.enter_context(cluster)


def test_disjoint_moves_run_at_the_same_time_and_one_that_overlaps_waits_with_what_overlaps_alone(
    kafka: KafkaCluster, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    with open_client(kafka.zookeeper_connect) as client, operate_namespace(
        kubernetes_api, kafka.zookeeper_connect
    ) as objects, run_operator(servers_folder, kubernetes_api):  # fmt: skip
        znodes = ClusterZnodes(client)
        for topic, replicas in {"first": [1], "second": [2]}.items():
            serve_topic(znodes, topic, [replicas, [2]])
            fill(kafka, topic)
        _move(objects, "first", {("first", 0): 3}, SLOW)
        _move(objects, "second", {("second", 0): 3}, SLOW)
        wait_until(lambda: znodes.read_assignment("first", 0) == [3, 1], "the first one runs")
        wait_until(lambda: znodes.read_assignment("second", 0) == [3, 2], "the second one runs")
        assert znodes.read_assignment("first", 0) == [3, 1], "it was not slowed"
        assert not znodes.has_reassignments()

        _move(objects, "third", {("first", 0): 2, ("first", 1): 3})
        objects.wait_ready(KIND, "third", "False", "WaitingForOtherReassignment")
        assert objects.condition(KIND, "third")["message"].endswith("for operated/first")
        wait_until(lambda: znodes.read_assignment("first", 1) == [3], "what does not overlap has moved")
        assert znodes.read_assignment("first", 0) == [3, 1]

        before = znodes.read("/brokers/topics/first")
        assert _ask_again(kafka, "first", 3) is ErrorCode.none
        assert znodes.read("/brokers/topics/first") == before, "asking for the same again changes nothing"

        _move(objects, "first", {("first", 0): 3}, FAST)
        _move(objects, "second", {("second", 0): 3}, FAST)
        for name in ("first", "second", "third"):
            assert objects.wait_ready(KIND, name)["status"]["phase"] == "Completed"
        assert (znodes.read_assignment("first", 0), znodes.read_assignment("second", 0)) == ([2], [3])
        assert not client.get_children("/kontroller/throttles")


def test_whenever_one_partition_is_done_the_next_one_begins(
    kafka: KafkaCluster, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    with open_client(kafka.zookeeper_connect) as client, operate_namespace(
        kubernetes_api, kafka.zookeeper_connect
    ) as objects, run_operator(servers_folder, kubernetes_api):  # fmt: skip
        znodes = ClusterZnodes(client)
        serve_topic(znodes, "sliding", [[1]] * 5)
        fill(kafka, "sliding")
        targets = {("sliding", number): 3 for number in range(5)}
        with slow_down(kafka, "sliding"):
            _move(objects, "sliding", targets, maxConcurrentPartitions=2)
            wait_until(
                lambda: objects.status(KIND, "sliding").get("counts", {}).get("done") == 4,
                "the empty ones have gone past the full one",
            )
            assert znodes.read_assignment("sliding", 0) == [3, 1], "it was not slowed"
        assert objects.wait_ready(KIND, "sliding")["status"]["phase"] == "Completed"
        assert not client.get_children("/kontroller/throttles")


def _move(
    objects: Objects,
    name: str,
    targets: dict[tuple[str, int], int],
    throttle: dict[str, int] | None = None,
    **spec: Any,
) -> None:
    """Move partitions to one broker each."""
    partitions = [{"topic": topic, "partition": number, "replicas": [to]} for (topic, number), to in targets.items()]
    limit = {"throttle": throttle} if throttle else {}
    objects.apply("PartitionReassignment", name, {"partitions": partitions, **limit, **spec})


def _ask_again(kafka: KafkaCluster, topic: str, broker: int) -> ErrorCode:
    partition = TopicPartition(TopicName(topic), PartitionId(0))
    client = RequestClient(parse_addresses(kafka.bootstrap_servers))
    results = asyncio.run(alter_reassignments(client, {partition: (BrokerId(broker),)}, REQUEST_TIMEOUT))
    return results.by_item[partition].code
