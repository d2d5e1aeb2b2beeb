"""Replicas move to the log directories that a PartitionReassignment names, with ZooKeeper and on Kafka 4."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from devcluster.clients.tools import CONFIGS, TOPICS, run_tool
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.operator.operated import Objects, fill, operate_namespace, run_operator

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(400)]

KIND = "partitionreassignment"
FACTORS = {
    "default.replication.factor": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
}
LIMIT = "replica.alter.log.dirs.io.max.bytes.per.second"
SLOW = f"{LIMIT}=1000"
"""A copy of the partition takes hours, so that no test misses it."""


@dataclass(frozen=True, kw_only=True)
class Disks:
    """A cluster of three brokers with two log directories each."""

    kafka: KafkaCluster | KRaftCluster
    directories: Mapping[int, Sequence[Path]]
    address: Mapping[str, Any]
    """The address of the cluster in the spec of a KafkaCluster."""

    def find(self, broker: int, topic: str) -> Path | None:
        """Return the log directory in which a broker has partition 0 of a topic."""
        return next((each for each in self.directories[broker] if (each / f"{topic}-0").exists()), None)

    def other(self, broker: int, topic: str) -> Path:
        return next(each for each in self.directories[broker] if each != self.find(broker, topic))

    def is_copying(self, broker: int, topic: str) -> bool:
        return any([*each.glob(f"{topic}-0.*-future")] for each in self.directories[broker])

    def limit(self, *change: str) -> None:
        """Change the limit of copies between the directories of broker 1."""
        broker = ("--entity-type", "brokers", "--entity-name", "1")
        done = run_tool(CONFIGS, "--bootstrap-server", self.kafka.bootstrap_servers, "--alter", *broker, *change)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(params=["Kontroller", "Kafka 4"])
def disks(request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Disks]:
    """The cluster, with a full partition `placed-0` on the brokers 1 and 2."""
    with ExitStack() as stack:
        if request.param == "Kafka 4":
            quorum = stack.enter_context(KRaftCluster(servers_folder, name="disks", controllers=1, log_directories=2))
            directories: dict[int, Sequence[Path]] = {
                number: broker.log_directories for number, broker in quorum.brokers.items()
            }
            found = Disks(kafka=quorum, directories=directories, address={"bootstrapServers": quorum.bootstrap_servers})
        else:
            kafka = KafkaCluster(servers_folder, zookeeper, brokers=0, chroot="/disks", properties=FACTORS)
            directories = {}
            for number in (1, 2, 3):
                directories[number] = [servers_folder.data(f"disks-{number}-{each}") for each in "ab"]
                kafka.add_broker(number, properties={"log.dirs": ",".join(map(str, directories[number]))})
            stack.enter_context(kafka)
            stack.enter_context(ControllerProcess(servers_folder, kafka.zookeeper_connect, name="disks-controller"))
            found = Disks(
                kafka=kafka, directories=directories, address={"zookeeper": {"connect": kafka.zookeeper_connect}}
            )
        created = ("--create", "--topic", "placed", "--replica-assignment", "1:2")
        done = run_tool(TOPICS, "--bootstrap-server", found.kafka.bootstrap_servers, *created)
        assert done.returncode == 0, done.stdout + done.stderr
        fill(found.kafka, "placed")
        yield found


def move(objects: Objects, name: str, replicas: list[int], log_dirs: list[str]) -> None:
    target = {"topic": "placed", "partition": 0, "replicas": replicas, "logDirs": log_dirs}
    objects.apply("PartitionReassignment", name, {"partitions": [target]})


def read_row(objects: Objects, name: str) -> Mapping[str, Any]:
    rows: list[dict[str, Any]] = objects.status(KIND, name).get("partitions", [{}])
    return rows[0]


def test_replicas_are_put_where_the_spec_says_by_whichever_operator_works(
    disks: Disks, servers_folder: RunFolder, kubernetes_api: KubernetesCluster
) -> None:
    wait_until(lambda: disks.find(1, "placed") is not None, "the topic has a log")
    here, there, new = disks.find(1, "placed"), disks.other(1, "placed"), disks.directories[3][1]
    disks.limit("--add-config", SLOW)
    with operate_namespace(kubernetes_api, **disks.address) as objects:
        with run_operator(servers_folder, kubernetes_api):
            move(objects, "nowhere", [1, 2], ["any", "/nowhere"])
            objects.wait_ready(KIND, "nowhere", "False", "UnknownLogDirectory")
            said = objects.condition(KIND, "nowhere")["message"]
            assert said.startswith("placed-0: /nowhere is not a log directory of broker 2, which has /")
            objects.delete(KIND, "nowhere")
            objects.wait_gone(KIND, "nowhere")

            move(objects, "there", [1, 3], [str(there), str(new)])
            wait_until(_says(objects, "there", f"is being copied to {there} on broker 1: "), "the copy is shown")
            assert disks.find(1, "placed") == here
        disks.limit("--delete-config", LIMIT)
        with run_operator(servers_folder, kubernetes_api):
            assert objects.wait_ready(KIND, "there")["status"]["phase"] == "Completed"
            assert (disks.find(1, "placed"), disks.find(3, "placed")) == (there, new)

            disks.limit("--add-config", SLOW)
            move(objects, "back", [1, 3], [str(here), "any"])
            wait_until(_says(objects, "back", "is being copied"), "it is copied back")
            assert objects.status(KIND, "back")["progress"]["bytesLeft"] > 0
            objects.delete(KIND, "back")
            objects.wait_gone(KIND, "back")
            wait_until(lambda: not disks.is_copying(1, "placed"), "the broker has dropped the copy")
            assert disks.find(1, "placed") == there


def _says(objects: Objects, name: str, words: str) -> Callable[[], bool]:
    return lambda: words in read_row(objects, name).get("message", "")
