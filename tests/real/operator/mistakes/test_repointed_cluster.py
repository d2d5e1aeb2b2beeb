"""A KafkaCluster is deleted, and created again under its name with the address of another Kafka cluster.

The first cluster has ZooKeeper, the other one has none, so the ids of both kinds of clusters are compared.
"""

from collections.abc import Iterator

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.operator.operated import NAMESPACE, Objects, operate_namespace, run_operator
from tests.real.operator.witnesses import Witness, witness_of

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

TOPIC = {"partitions": 2, "replicationFactor": 1, "clusterRef": {"name": "switch"}, "deletionPolicy": "Delete"}
CLUSTER, LEFT, MOVED = ("kafkacluster", "switch"), ("kafkatopic", "left"), ("kafkatopic", "moved")
FORCE = "kontroller.dev/delete-before-dependents=true"


@pytest.fixture(scope="module")
def first(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[KafkaCluster]:
    with KafkaCluster(servers_folder, zookeeper, brokers=1, chroot="/first") as started:
        yield started


@pytest.fixture(scope="module")
def second(servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    with KRaftCluster(servers_folder, brokers=1, combined=True, name="second") as started:
        yield started


@pytest.fixture
def objects(servers_folder: RunFolder, kubernetes_api: KubernetesCluster, first: KafkaCluster) -> Iterator[Objects]:
    with (
        operate_namespace(kubernetes_api, first.zookeeper_connect) as found,
        run_operator(servers_folder, kubernetes_api),
    ):
        yield found


@pytest.fixture
def here(first: KafkaCluster) -> Iterator[Witness]:
    with witness_of(first) as found:
        yield found


@pytest.fixture
def there(second: KRaftCluster) -> Iterator[Witness]:
    with witness_of(second) as found:
        yield found


def has(cluster: Witness, topic: str) -> bool:
    return bool(cluster.topic_id(topic))


def test_nothing_is_done_in_the_other_cluster_until_a_person_accepts_it(
    objects: Objects, first: KafkaCluster, second: KRaftCluster, here: Witness, there: Witness
) -> None:
    objects.apply("KafkaCluster", "switch", {"zookeeper": {"connect": first.zookeeper_connect}})
    for _, name in (LEFT, MOVED):
        objects.apply("KafkaTopic", name, TOPIC)
    for kind, name in (LEFT, MOVED, CLUSTER):
        objects.wait_ready(kind, name)
    known = objects.status(*CLUSTER)["clusterId"]
    assert [objects.status(*each)["clusterId"] for each in (LEFT, MOVED)] == [known, known]

    objects.annotate(*CLUSTER, FORCE)
    objects.delete(*CLUSTER)
    objects.wait_gone(*CLUSTER)
    objects.apply("KafkaCluster", "switch", {"bootstrapServers": second.bootstrap_servers})
    for kind, name in (LEFT, MOVED, CLUSTER):
        objects.wait_ready(kind, name, "False", "ClusterChanged")
        assert objects.condition(kind, name, "Stalled")["status"] == "True"
    accept = f"--overwrite kontroller.dev/accept-cluster={second.cluster_id}"
    assert objects.condition(*MOVED)["message"] == (
        f"KafkaCluster {NAMESPACE}/switch leads to Kafka cluster {second.cluster_id}, and this object was carried out in "
        f"Kafka cluster {known}: nothing is done in {second.cluster_id}. Correct the address of the KafkaCluster. To have "
        f"this object carried out in {second.cluster_id}, as if it were new: kubectl annotate "
        f"kafkatopics.kontroller.dev moved --namespace {NAMESPACE} {accept} (or, for all objects of the KafkaCluster: "
        "kubectl annotate kafkaclusters.kontroller.dev switch --namespace "
        f"{NAMESPACE} {accept})"
    )
    said = objects.condition(*CLUSTER)["message"]
    assert f"2 objects that refer to it were carried out in Kafka cluster {known}: nothing is done for them" in said

    objects.delete(*LEFT)
    objects.wait_gone(*LEFT)
    objects.wait_for_event("left", "ClusterChanged")
    assert (has(here, "left"), has(here, "moved")) == (True, True)
    assert (has(there, "left"), has(there, "moved")) == (False, False)

    objects.annotate(*CLUSTER, accept.removeprefix("--overwrite "))
    for kind, name in (MOVED, CLUSTER):
        objects.wait_ready(kind, name)
        assert objects.status(kind, name)["clusterId"] == second.cluster_id
    assert has(there, "moved")
    assert not has(there, "left")
    assert "TopicDeleted" not in objects.events("moved")
    objects.delete(*MOVED)
    objects.wait_gone(*MOVED)
    wait_until(lambda: not has(there, "moved"), "the topic is deleted in the cluster that was accepted")
    assert has(here, "moved")
