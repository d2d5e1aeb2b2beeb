"""A broker whose log directories are cordoned (KIP-1066): new replicas go elsewhere, and moves to it wait with a
reason.
"""

import asyncio
from collections.abc import Iterator

import pytest

from controller_core.client.admin_client import AdminClient
from devcluster.clients.tools import CONFIGS, TOPICS, run_tool
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.kraft.releases import WITH_CORDONS
from tests.real.operator.operated import Objects, Operator, run_operator

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(600)]

SAID = "includes broker 3, but all its log directories are cordoned"


@pytest.fixture(scope="module", params=WITH_CORDONS)
def kafka(request: pytest.FixtureRequest, servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    with KRaftCluster(servers_folder, name="cordoned", brokers=4, controllers=1, version=request.param) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def operator(servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects) -> Iterator[Operator]:
    with run_operator(servers_folder, kubernetes_api) as running:
        yield running


def cordon(kafka: KRaftCluster, *change: str) -> None:
    of_broker_3 = ("--entity-type", "brokers", "--entity-name", "3")
    done = run_tool(CONFIGS, "--bootstrap-server", kafka.bootstrap_servers, "--alter", *of_broker_3, *change)
    assert done.returncode == 0, done.stdout + done.stderr


def create(kafka: KRaftCluster, topic: str, assignment: str) -> None:
    asked = ("--create", "--topic", topic, "--replica-assignment", assignment)
    done = run_tool(TOPICS, "--bootstrap-server", kafka.bootstrap_servers, *asked)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_move_to_it_waits_and_goes_on_when_it_is_cordoned_no_more(
    operator: Operator, objects: Objects, kafka: KRaftCluster
) -> None:
    create(kafka, "orders", "1:2,2:1")
    cordon(kafka, "--add-config", "cordoned.log.dirs=*")
    objects.apply("KafkaTopic", "more", {"replicaAssignment": [[1, 3]]})
    objects.wait_ready("kafkatopic", "more", "False", "RequestRefused")
    assert SAID in objects.condition("kafkatopic", "more")["message"]

    to = [{"topic": "orders", "partition": 0, "replicas": [1, 3]}, {"topic": "orders", "partition": 1, "replicas": [1]}]
    objects.apply("PartitionReassignment", "there", {"partitions": to})

    wait_until(
        lambda: rows(objects, "there").get(("orders", 1)) == ("Done", ""),
        "the other partition has moved",
    )
    step, why = rows(objects, "there")["orders", 0]
    assert step == "Waiting"
    assert SAID in why
    assert objects.status("partitionreassignment", "there")["phase"] == "Running"

    cordon(kafka, "--delete-config", "cordoned.log.dirs")
    wait_until(lambda: objects.status("partitionreassignment", "there")["phase"] == "Completed", "it has moved")


def test_topics_and_drains_go_elsewhere_and_are_told_what_is_missing(
    operator: Operator, objects: Objects, kafka: KRaftCluster
) -> None:
    """The operator notices a cordon within a minute or so."""
    create(kafka, "before", "1:3,4:2,3:4")
    cordon(kafka, "--add-config", "cordoned.log.dirs=*")
    objects.apply("KafkaTopic", "wanting", {"partitions": 1, "replicationFactor": 4})

    def why_not() -> str:
        return str(objects.condition("kafkatopic", "wanting").get("message", ""))

    wait_until(lambda: "all cordoned take no new replicas: 3" in why_not(), "it is said")
    assert objects.condition("kafkatopic", "wanting")["reason"] == "NotEnoughBrokers"

    objects.apply("KafkaTopic", "elsewhere", {"partitions": 12, "replicationFactor": 2})
    objects.wait_ready("kafkatopic", "elsewhere")
    assert {broker for each in replicas(kafka, "elsewhere") for broker in each} == {1, 2, 4}

    objects.apply("PartitionReassignment", "empty-4", {"drainBrokers": [4]})

    def list_left() -> set[tuple[str, int]]:
        return {partition for partition, (step, _) in rows(objects, "empty-4").items() if step != "Done"}

    wait_until(lambda: list_left() == {("before", 2)}, "all has moved that Kafka moves")
    wait_until(lambda: replicas(kafka, "before")[:2] == [[1, 3], [1, 2]], "brokers know it")
    step, why = rows(objects, "empty-4")["before", 2]
    assert (step, SAID in why) == ("Waiting", True), "it keeps a replica there, which Kafka takes for a new one"

    cordon(kafka, "--delete-config", "cordoned.log.dirs")
    wait_until(
        lambda: objects.status("partitionreassignment", "empty-4").get("phase") == "Completed",
        "broker 4 is empty",
    )


def rows(objects: Objects, move: str) -> dict[tuple[str, int], tuple[str, str]]:
    """Return the step of each partition, and its message."""
    found = objects.status("partitionreassignment", move).get("partitions", [])
    return {(each["topic"], each["partition"]): (each["step"], each.get("message", "")) for each in found}


def replicas(kafka: KRaftCluster, topic: str) -> list[list[int]]:
    """Return the replicas of each partition."""
    described = asyncio.run(AdminClient({"bootstrap.servers": kafka.bootstrap_servers}).describe_topic(topic))
    return [list(map(int, each.replicas)) for each in described.partitions]
