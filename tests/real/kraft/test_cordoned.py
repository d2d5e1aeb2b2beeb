"""A broker whose log directories are cordoned (KIP-1066): what would go there waits, and says what for."""

from collections.abc import Iterator

import pytest

from devcluster.clients.tools import CONFIGS, TOPICS, run_tool
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.kraft.releases import WITH_CORDONS
from tests.real.operator.operated import Objects, Operator, running_operator

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

SAID = "includes broker 3, but all its log directories are cordoned"


@pytest.fixture(scope="module", params=WITH_CORDONS)
def kafka(request: pytest.FixtureRequest, servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    with KRaftCluster(servers_folder, name="cordoned", controllers=1, version=request.param) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def operator(servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects) -> Iterator[Operator]:
    with running_operator(servers_folder, kubernetes_api) as running:
        yield running


def cordon(kafka: KRaftCluster, *change: str) -> None:
    of_broker_3 = ("--entity-type", "brokers", "--entity-name", "3")
    done = run_tool(CONFIGS, "--bootstrap-server", kafka.bootstrap_servers, "--alter", *of_broker_3, *change)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_move_to_it_waits_and_goes_on_when_it_is_cordoned_no_more(
    operator: Operator, objects: Objects, kafka: KRaftCluster
) -> None:
    create = ("--create", "--topic", "orders", "--replica-assignment", "1:2,2:1")
    run_tool(TOPICS, "--bootstrap-server", kafka.bootstrap_servers, *create)
    cordon(kafka, "--add-config", "cordoned.log.dirs=*")
    objects.apply("KafkaTopic", "more", {"replicaAssignment": [[1, 3]]})
    objects.wait_ready("kafkatopic", "more", "False", "RequestRefused")
    assert SAID in objects.condition("kafkatopic", "more")["message"]

    to = [{"topic": "orders", "partition": 0, "replicas": [1, 3]}, {"topic": "orders", "partition": 1, "replicas": [1]}]
    objects.apply("PartitionReassignment", "there", {"partitions": to})

    def rows() -> dict[int, tuple[str, str]]:
        found = objects.status("partitionreassignment", "there").get("partitions", [])
        return {each["partition"]: (each["step"], each.get("message", "")) for each in found}

    wait_until(lambda: rows().get(1) == ("Done", ""), "the other partition has moved", deadline_s=60)
    step, why = rows()[0]
    assert step == "Waiting"
    assert SAID in why
    assert objects.status("partitionreassignment", "there")["phase"] == "Running"

    cordon(kafka, "--delete-config", "cordoned.log.dirs")
    wait_until(
        lambda: objects.status("partitionreassignment", "there")["phase"] == "Completed", "it has moved", deadline_s=60
    )
