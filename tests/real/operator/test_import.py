"""The output of `kontroller import` is applied, becomes Ready, and changes nothing in ZooKeeper: topics of a live
cluster, and topics that other tools declare. RebalancePlans of the output are accepted, and wait for approval."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
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


def adopt(
    objects: Objects, api: KubernetesCluster, folder: RunFolder, client: KazooClient, documents: str, count: int
) -> None:
    """Apply the documents, wait until all are Ready, and check that the operator wrote nothing to the cluster."""
    before = versions(client)
    with run_operator(folder, api) as operator:
        api.kubectl("apply", "--server-side", "-f", "-", stdin=documents)
        wait_until(lambda: sum(map(is_ready, objects.every("kafkatopics"))) == count, "all are Ready")
        assert operator.writes()["transact"] == 0
        assert operator.writes()["patch_status"] >= count
    assert versions(client) == before


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

        adopt(objects, kubernetes_api, servers_folder, client, written.stdout, TOPICS)
    again = import_objects(monkeypatch, kubernetes_api)
    assert (again.returncode, again.stdout) == (0, "")
    assert "200 that have a KafkaTopic" in again.stderr


DECLARED = {
    "strimzi.yaml": """
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: clicks, labels: {strimzi.io/cluster: demo, team: web}, annotations: {argocd.argoproj.io/tracking-id: x}}
spec:
  partitions: "2"
  replicas: 2
  config:
    retention.ms: 6.048e+08
    preallocate: yes
    max.message.bytes: 1_048_576
    segment.bytes: 0x40000000
    cleanup.policy: [compact, delete]
    leader.replication.throttled.replicas: "*"
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: misspelt, labels: {strimzi.io/cluster: demo}}
spec: {partitions: 1, replicas: 1, config: {min.in.sync.replicas: 1}}
""",
    "koperator.yaml": """
apiVersion: kafka.banzaicloud.io/v1alpha1
kind: KafkaTopic
metadata: {name: invoices, annotations: {managedBy: koperator}}
spec: {clusterRef: {name: demo}, name: Invoices_EU, partitions: 1, replicationFactor: 2}
""",
    "confluent.yaml": """
apiVersion: platform.confluent.io/v1beta1
kind: KafkaTopic
metadata: {name: audit}
spec: {replicas: 2, partitionCount: 1, configs: {cleanup.policy: delete}, kafkaClusterRef: {name: demo}}
""",
    "jikkou.yaml": """
apiVersion: kafka.jikkou.io/v1beta2
kind: KafkaTopicList
items: [{metadata: {name: Payments}, spec: {partitions: 1, replicas: 1, configs: {flush.ms: 5}}}]
""",
    "topicctl.yaml": """
meta: {name: placed, cluster: demo}
spec: {partitions: 2, replicationFactor: 2, retentionMinutes: 10, placement: {strategy: static, staticAssignments: BROKERS}}
""",
    "julie.yaml": """
context: company
projects:
- {name: shop, topics: [{name: orders, plan: gold, config: {num.partitions: 1, replication.factor: 2}}]}
---
plans: {gold: {config: {retention.ms: "5000"}}}
""",
    "terraform.tfstate": """
{"version": 4, "terraform_version": "1.9.5", "resources": [
  {"mode": "managed", "type": "kafka_topic", "name": "logs", "instances": [{"attributes":
    {"name": "System_Logs", "partitions": 2, "replication_factor": 1, "config": {"segment.ms": "20000"}}}]}]}
""",
}
LIVE: dict[str, tuple[int, int, dict[str, str]]] = {
    "clicks": (
        2,
        2,
        {
            "retention.ms": "604800000",
            "preallocate": "true",
            "max.message.bytes": "1048576",
            "segment.bytes": "1073741824",
            "cleanup.policy": "compact,delete",
        },
    ),
    "Invoices_EU": (1, 2, {}),
    "audit": (1, 2, {"cleanup.policy": "delete"}),
    "Payments": (1, 1, {"flush.ms": "5"}),
    "placed": (2, 2, {"retention.ms": "600000"}),
    "company.shop.orders": (1, 2, {"retention.ms": "5000"}),
    "System_Logs": (2, 1, {"segment.ms": "20000"}),
}
"""The partitions, replicas and configuration of the topics as the other tools made them."""


def test_topics_of_other_tools_become_ready_without_drift_and_a_fault_beside_them_costs_none(
    kafka: KafkaCluster,
    objects: Objects,
    kubernetes_api: KubernetesCluster,
    servers_folder: RunFolder,
    tmp_path: Path,
) -> None:
    first, second = kafka.brokers
    brokers = [[first, second], [second, first]]
    options = ["--cluster", "demo", "--namespace", NAMESPACE]
    for name, text in DECLARED.items():
        (tmp_path / name).write_text(text.replace("BROKERS", str(brokers)))
        options += ["--from", str(tmp_path / name)]
    with open_client(kafka.zookeeper_connect) as client:
        znodes = ClusterZnodes(client)
        for name, (partitions, replicas, config) in LIVE.items():
            znodes.create_topic(name, [each[:replicas] for each in brokers[:partitions]], config)
        wait_until(lambda: all(is_served(znodes, name) for name in LIVE), "all topics are served")

        written = run_command("import", *options)
        assert written.returncode == 1
        assert "topic misspelt has no KafkaTopic: topics have no configuration min.in.sync.replicas" in written.stderr
        adopt(objects, kubernetes_api, servers_folder, client, written.stdout, len(LIVE))
    statuses = {each["status"]["topicName"]: each["status"] for each in objects.every("kafkatopics")}
    assert statuses.keys() == LIVE.keys()
    for status in statuses.values():
        totals = [(status.get(name) or {}).get("total", 0) for name in ("plan", "undeclaredConfig")]
        assert (status.get("drift") or [], totals) == ([], [0, 0])


REBALANCES = """
apiVersion: v1
kind: List
items:
- apiVersion: kafka.strimzi.io/v1
  kind: KafkaRebalance
  metadata: {name: even, labels: {strimzi.io/cluster: demo, team: web}}
  spec: {goals: [RackAwareGoal], replicationThrottle: 5e+07, excludedTopics: "audit|orders-.*|__.+|a.b|.*-x"}
  status: {conditions: [{type: ProposalReady, status: "True"}]}
- apiVersion: kafka.strimzi.io/v1beta2
  kind: KafkaRebalance
  metadata: {name: fill, labels: {strimzi.io/cluster: demo}}
  spec: {mode: add-brokers, brokers: [2, 3, 2]}
- apiVersion: kafka.strimzi.io/v1beta2
  kind: KafkaRebalance
  metadata: {name: empty, labels: {strimzi.io/cluster: demo}, annotations: {strimzi.io/pause-reconciliation: "true"}}
  spec: {mode: remove-brokers, brokers: [3]}
- apiVersion: kafka.strimzi.io/v1
  kind: KafkaRebalance
  metadata: {name: done, labels: {strimzi.io/cluster: demo}}
  spec: {mode: remove-brokers, brokers: [4]}
  status: {conditions: [{type: Ready, status: "True"}]}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: beside, labels: {strimzi.io/cluster: demo}}
spec: {partitions: 1, replicas: 1}
"""
DEFAULTS: dict[str, Any] = {"clusterRef": {"name": "demo"}, "approval": "Required", "betweenLooksSeconds": 60}


def test_rebalances_of_strimzi_are_taken_by_the_api_server_as_plans_that_need_approval(
    objects: Objects, kubernetes_api: KubernetesCluster, tmp_path: Path
) -> None:
    file = tmp_path / "rebalances.yaml"
    file.write_text(REBALANCES)
    written = run_command("import", "--namespace", NAMESPACE, "--from", str(file))
    assert written.returncode == 0, written.stderr
    kubernetes_api.kubectl("apply", "--server-side", "-f", "-", stdin=written.stdout)
    assert [each["metadata"]["name"] for each in objects.every("kafkatopics")] == ["beside"]
    assert {each["metadata"]["name"]: each["spec"] for each in objects.every("rebalanceplans")} == {
        "even": {
            **DEFAULTS,
            "mode": "rebalance",
            "scope": {"excludeTopics": ["audit", "orders-*", "__?*", "a?b", "*-x"]},
            "throttle": {"bytesPerSecond": 50_000_000},
        },
        "fill": {**DEFAULTS, "mode": "expand", "brokers": [2, 3]},
        "empty": {**DEFAULTS, "mode": "drain", "brokers": [3]},
    }
