"""A namespace is deleted with its KafkaCluster and its objects; a record elsewhere names the leftovers.

No controller of Kubernetes runs, so the test deletes the namespace's objects, as the namespace controller does.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.ports import release_port, reserve_port
from devcluster.running.processes import wait_until
from devcluster.running.scraping import open_locally
from tests.real.operator.deletion.conftest import WITH_ZOOKEEPER, WITHOUT_ZOOKEEPER, Clusters
from tests.real.operator.operated import (
    KINDS,
    NAMESPACE,
    Objects,
    fill,
    install_chart,
    operate_namespace,
    run_operator,
)
from tests.real.operator.witnesses import witness_of

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

TEAM = "team-c"
CLUSTER, TOPIC, MOVE = ("kafkacluster", "mine"), ("kafkatopic", "c-del"), ("partitionreassignment", "move")


class Team(Objects):
    """A namespace that is deleted."""

    def begin(self, kafka: KafkaCluster | KRaftCluster, **topic: str) -> None:
        """Create the KafkaCluster and a topic that is deleted with its object. `topic`: more of its spec."""
        at = (
            {"bootstrapServers": kafka.bootstrap_servers}
            if isinstance(kafka, KRaftCluster)
            else {"zookeeper": {"connect": kafka.zookeeper_connect}}
        )
        self.apply("KafkaCluster", "mine", at)
        spec = {"clusterRef": {"name": "mine"}, "replicaAssignment": [[1]], "deletionPolicy": "Delete", **topic}
        self.apply("KafkaTopic", "c-del", spec)
        self.wait_ready(*TOPIC)

    def end(self) -> None:
        """Delete the namespace, and all objects in it."""
        self._api.kubectl("delete", "namespace", TEAM, "--wait=false")
        for kind in KINDS:
            self._api.kubectl("delete", kind, "--all", "--namespace", TEAM, "--wait=false")

    def finalize(self) -> None:
        """Remove the empty namespace."""
        body = self._api.get("namespace", TEAM)
        body["spec"]["finalizers"] = []
        self._api.kubectl("replace", "--raw", f"/api/v1/namespaces/{TEAM}/finalize", "-f", "-", stdin=json.dumps(body))


@pytest.fixture(scope="module")
def metrics_port(servers_folder: RunFolder, kubernetes_api: KubernetesCluster, clusters: Clusters) -> Iterator[int]:
    """The port of the metrics of an operator that watches the namespace and runs in another one."""
    port = reserve_port()
    env = {"KONTROLLER_METRICS_PORT": str(port)}
    first = clusters[WITH_ZOOKEEPER]
    assert isinstance(first, KafkaCluster)
    with operate_namespace(kubernetes_api, first.zookeeper_connect):
        _make_namespace(kubernetes_api)
        install_chart(kubernetes_api, NAMESPACE, TEAM)
        with run_operator(servers_folder, kubernetes_api, env=env, namespaces=(NAMESPACE, TEAM)):
            yield port
    release_port(port)


@pytest.fixture
def team(kubernetes_api: KubernetesCluster, metrics_port: int) -> Iterator[Team]:
    _make_namespace(kubernetes_api)
    install_chart(kubernetes_api, NAMESPACE, TEAM)
    found = Team(kubernetes_api, TEAM)
    yield found
    found.finalize()


def _make_namespace(api: KubernetesCluster) -> None:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}}
    api.kubectl("apply", "-f", "-", stdin=json.dumps(namespace))


def leftovers(api: KubernetesCluster) -> list[dict[str, str]]:
    """Return the output of `kubectl kontroller leftovers`."""
    command = [sys.executable, "-m", "kontroller.plugin.command_line", "leftovers", "-n", NAMESPACE, "-o", "json"]
    env = {**os.environ, "KUBECONFIG": str(api.kubeconfig)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=60)
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def count_left_behind(port: int, kind: str) -> float:
    with open_locally(f"http://127.0.0.1:{port}/metrics", timeout_s=10) as answer:
        lines = answer.read().decode().splitlines()
    (line,) = [each for each in lines if each.startswith(f'kontroller_operator_left_behind_total{{kind="{kind}"}}')]
    return float(line.split()[-1])


def test_a_topic_whose_deletion_nobody_approves_stays_and_the_namespace_does_not_hang(
    team: Team, kubernetes_api: KubernetesCluster, clusters: Clusters, metrics_port: int
) -> None:
    kafka = clusters[WITH_ZOOKEEPER]
    team.begin(kafka, approval="Required", topicName="c-waits")
    team.delete(*TOPIC)
    team.wait_ready(*TOPIC, "False", "AwaitingApproval")
    team.wait_for_event(TOPIC[1], "AwaitingApproval")
    team.end()
    for kind, name in (TOPIC, CLUSTER):
        team.wait_gone(kind, name)
    with witness_of(kafka) as witness:
        assert witness.topic_id("c-waits")
    (left,) = [each for each in leftovers(kubernetes_api) if each["reason"] == "DeletionNotApproved"]
    assert (left["kind"], left["namespace"], left["name"]) == ("KafkaTopic", TEAM, "c-del")
    assert count_left_behind(metrics_port, "KafkaTopic") >= 1


@pytest.mark.parametrize("cluster", [WITH_ZOOKEEPER, WITHOUT_ZOOKEEPER])
def test_topics_are_deleted_and_moves_are_taken_back_before_the_cluster_goes(
    team: Team, kubernetes_api: KubernetesCluster, clusters: Clusters, cluster: str
) -> None:
    kafka = clusters[cluster]
    team.begin(kafka)
    kept = {"clusterRef": {"name": "mine"}, "topicName": "kept", "replicaAssignment": [[1]], "driftPolicy": "Ignore"}
    team.apply("KafkaTopic", "kept", kept)
    team.wait_ready("kafkatopic", "kept")
    fill(kafka, "kept")
    target = {"topic": "kept", "partition": 0, "replicas": [2]}
    slow = {"clusterRef": {"name": "mine"}, "partitions": [target], "throttle": {"bytesPerSecond": 100_000}}
    team.apply("PartitionReassignment", "move", slow)
    wait_until(lambda: team.status(*MOVE).get("counts", {}).get("moving") == 1, "the move runs")
    before = leftovers(kubernetes_api)
    with witness_of(kafka) as witness:
        assert witness.read_assignment("kept", 0) != [1]
        team.end()
        for kind, name in (TOPIC, MOVE, CLUSTER):
            team.wait_gone(kind, name)
        assert not witness.topic_id("c-del")
        assert witness.read_assignment("kept", 0) == [1]
        assert witness.throttles("kept").rates == {}
    assert leftovers(kubernetes_api) == before


def test_what_stays_is_on_record_beside_the_operator(
    team: Team, kubernetes_api: KubernetesCluster, clusters: Clusters, metrics_port: int
) -> None:
    kafka = clusters[WITH_ZOOKEEPER]
    team.begin(kafka)
    counted = count_left_behind(metrics_port, "KafkaTopic")
    team.annotate(*CLUSTER, "kontroller.dev/delete-before-dependents=true")
    team.delete(*CLUSTER)
    team.wait_gone(*CLUSTER)
    team.end()
    team.wait_gone(*TOPIC)
    with witness_of(kafka) as witness:
        assert witness.topic_id("c-del")
    told = {(each["kind"], each["reason"]): each for each in leftovers(kubernetes_api) if each["namespace"] == TEAM}
    topic = told["KafkaTopic", "ClusterGone"]
    assert topic["name"] == "c-del"
    assert topic["message"].startswith("the topic, if there is one, stays: there is no KafkaCluster team-c/mine")
    assert told["KafkaCluster", "DeletedBeforeDependents"]["name"] == "mine"
    assert count_left_behind(metrics_port, "KafkaTopic") == counted + 1
    events = kubernetes_api.get("events", "--namespace", NAMESPACE, "--field-selector", "reason=LeftBehind")["items"]
    messages = [each["message"] for each in events]
    assert f"KafkaTopic team-c/c-del (ClusterGone): {topic['message']}" in messages
