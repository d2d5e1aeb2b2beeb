"""`kontroller import` on a live cluster: its output is applied, becomes Ready, and changes nothing in ZooKeeper."""

import os
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from kazoo.client import KazooClient

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import run_command
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from tests.real.operator.operated import NAMESPACE, Objects, operate_namespace, run_operator

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

TOPICS = 200
CHANGED = ("/brokers/topics", "/config/topics", "/config/changes", "/admin", "/kontroller")
"""The znodes that an operator may write, with everything below."""


@pytest.fixture(scope="module")
def kafka(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[KafkaCluster]:
    """Two brokers for this test alone, because it counts writes."""
    with zookeeper.client() as client:
        client.ensure_path("/imported")
    with KafkaCluster(servers_folder, zookeeper, brokers=2, chroot="/imported") as cluster:
        yield cluster


@pytest.fixture
def objects(kubernetes_api: KubernetesCluster, kafka: KafkaCluster) -> Iterator[Objects]:
    with operate_namespace(kubernetes_api, kafka.zookeeper_connect) as found:
        yield found


def versions(client: KazooClient) -> dict[str, tuple[int, int, int]]:
    """Return the transaction ids of each znode's creation, its last write, and the last change of its children."""
    found: dict[str, tuple[int, int, int]] = {}

    def visit(path: str) -> None:
        stat = client.exists(path)
        if stat is not None:
            found[path] = (stat.czxid, stat.mzxid, stat.pzxid)
            for child in client.get_children(path):
                visit(f"{path}/{child}")

    for path in CHANGED:
        visit(path)
    return found


def is_served(znodes: ClusterZnodes, topic: str) -> bool:
    return znodes.is_served(topic, list(znodes.partitions(topic)))


def import_objects(monkeypatch: pytest.MonkeyPatch, api: KubernetesCluster) -> subprocess.CompletedProcess[str]:
    monkeypatch.setitem(os.environ, "KUBECONFIG", str(api.kubeconfig))
    return run_command("import", "--cluster", "demo", "--namespace", NAMESPACE)


def is_ready(found: dict[str, Any]) -> bool:
    conditions = found.get("status", {}).get("conditions", [])
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def test_two_hundred_imported_topics_become_ready_and_nothing_is_written_to_zookeeper(
    kafka: KafkaCluster,
    objects: Objects,
    kubernetes_api: KubernetesCluster,
    servers_folder: RunFolder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second = kafka.brokers
    names = [f"Orders_{number}" if number % 2 else f"orders.{number}" for number in range(TOPICS)]
    with open_client(kafka.zookeeper_connect) as client:
        znodes = ClusterZnodes(client)
        for number, name in enumerate(names):
            config = {} if number % 5 else {"retention.ms": str(600_000 + number), "cleanup.policy": "compact"}
            znodes.create_topic(name, [[first, second], [second, first]] if number % 3 else [[first]], config)
        wait_until(lambda: all(is_served(znodes, name) for name in names), "all topics are served")

        written = import_objects(monkeypatch, kubernetes_api)
        assert (written.returncode, written.stderr) == (0, "kontroller import: 200 topics imported; left out: none\n")
        documents = list(yaml.safe_load_all(written.stdout))
        assert sorted(each["spec"].get("topicName", each["metadata"]["name"]) for each in documents) == sorted(names)

        before = versions(client)
        with run_operator(servers_folder, kubernetes_api) as operator:
            kubernetes_api.kubectl("apply", "--server-side", "-f", "-", stdin=written.stdout)
            wait_until(lambda: sum(map(is_ready, objects.every("kafkatopics"))) == TOPICS, "all are Ready")
            assert operator.writes()["transact"] == 0
            assert operator.writes()["patch_status"] >= TOPICS
        assert versions(client) == before
    again = import_objects(monkeypatch, kubernetes_api)
    assert (again.returncode, again.stdout) == (0, "")
    assert "200 that have a KafkaTopic" in again.stderr
