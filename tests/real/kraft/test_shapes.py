"""Clusters without ZooKeeper whose controllers are not three separate processes with a static quorum.

An operator and a recorder watch each of them all the time, and its nodes are drained and restarted.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller_core.journal.fold import fold
from controller_core.journal.reader import read
from devcluster.clients.tools import METADATA_QUORUM, run_tool
from devcluster.clusters.kontroller import RecorderProcess, run_command
from devcluster.clusters.kraft import KRaftCluster, KRaftNode
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until
from tests.real.kraft.history.recordings import (
    assert_comes_to,
    changes,
    recorder_of,
    wait_until_all_in_sync,
    wait_until_it_comes_to,
)
from tests.real.operator.operated import Objects, operate_namespace, run_operator

pytestmark = [pytest.mark.real(Part.KRAFT), pytest.mark.timeout(300)]

DEADLINE_S = 90.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A cluster with an operator and a recorder."""

    kafka: KRaftCluster
    objects: Objects
    recorder: RecorderProcess
    journal: Path

    def active(self) -> int:
        """Return the active controller, as soon as the command and the KafkaCluster agree."""
        wait_until(lambda: self._describe_controller() == self._find_shown_controller(), "both say the same")
        return self._describe_controller()

    def _describe_controller(self) -> int:
        described = json.loads(self.command("cluster", "describe", "-o", "json", option="--bootstrap-server"))
        return int(described["controller"] or -1)

    def _find_shown_controller(self) -> int:
        shown = self.objects.wait_ready("kafkacluster", "demo")["status"]["controller"]
        assert shown["kind"] == "KRaft"
        return int(shown["id"])

    def command(self, *arguments: str, option: str = "--bootstrap-server") -> str:
        """Return the output of a command, which must succeed."""
        done = run_command(*arguments, option, self.kafka.bootstrap_servers)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def make_topic(self, name: str, **spec: object) -> None:
        self.objects.apply("KafkaTopic", name, dict(spec))
        self.objects.wait_ready("kafkatopic", name)

    def restart(self, node: KRaftNode) -> str:
        """Drain, stop and start a node; return the output of the drain."""
        drained = run_command(
            "drain", "--bootstrap-server", self.kafka.bootstrap_servers, "--broker-id", str(node.node_id)
        )
        assert drained.returncode == 0, drained.stdout + drained.stderr
        node.stop()
        node.start()
        ready = ("ready", "--bootstrap-server", node.address, "--broker-id", str(node.node_id))
        wait_until(lambda: run_command(*ready).returncode == 0, f"{node.node_id} is ready")
        return drained.stdout + drained.stderr

    def assert_recorded(self) -> None:
        """Assert that all changes were recorded, from the controllers' log, without gaps."""
        wait_until_all_in_sync(self.kafka)
        said = wait_until_it_comes_to(self.journal, self.kafka)
        assert self.recorder.metric("kontroller_recorder_polls") == 0
        self.recorder.process.stop()
        folded = fold(read(self.journal))
        assert (folded.findings, folded.gaps) == ([], [])
        assert_comes_to(folded, said)
        assert "unobserved" not in {line.cause for line in changes(self.journal)}


@contextmanager
def watch(folder: RunFolder, api: KubernetesCluster, journal: Path, kafka: KRaftCluster) -> Iterator[Watched]:
    with (
        kafka,
        recorder_of(kafka, folder, journal) as recorder,
        operate_namespace(api, bootstrapServers=kafka.bootstrap_servers) as objects,
        run_operator(folder, api),
    ):
        yield Watched(kafka=kafka, objects=objects, recorder=recorder, journal=journal)


def test_nodes_that_are_brokers_and_controllers_are_restarted_the_active_controller_first(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, tmp_path: Path
) -> None:
    kafka = KRaftCluster(
        servers_folder, name="combined", combined=True, release="4.0", properties={"min.insync.replicas": 2}
    )
    with watch(servers_folder, kubernetes_api, tmp_path / "combined", kafka) as cluster:
        cluster.make_topic("orders", replicaAssignment=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
        active = cluster.active()
        checked = cluster.command("check", "cluster")
        assert f"{active} leads the quorum of controllers" in checked
        cluster.restart(kafka.broker(active))
        assert cluster.active() != active
        cluster.make_topic("payments", replicaAssignment=[[active, 1 + active % 3]])
        cluster.assert_recorded()


def test_the_one_node_that_there_is_waits_for_nobody(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, tmp_path: Path
) -> None:
    kafka = KRaftCluster(servers_folder, name="alone", brokers=1, combined=True)
    with watch(servers_folder, kubernetes_api, tmp_path / "alone", kafka) as cluster:
        cluster.make_topic("orders", partitions=2, replicationFactor=1)
        assert cluster.active() == 1
        said = cluster.restart(kafka.broker(1))
        assert "not waited for, no other replica" in said
        assert "1 leads the quorum of controllers" in cluster.command("check", "cluster")
        assert cluster.active() == 1
        cluster.make_topic("payments", partitions=1, replicationFactor=1)
        cluster.assert_recorded()


def test_voters_come_and_go_and_the_one_that_leads_goes_too(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, tmp_path: Path
) -> None:
    kafka = KRaftCluster(servers_folder, name="dynamic", brokers=1, controllers=2, dynamic=True)
    with watch(servers_folder, kubernetes_api, tmp_path / "dynamic", kafka) as cluster:
        cluster.make_topic("orders", partitions=2, replicationFactor=1)
        assert cluster.active() == 101
        finalized = cluster.objects.status("kafkacluster", "demo")["features"]["finalized"]
        assert [each["maxVersionLevel"] for each in finalized if each["name"] == "kraft.version"] == [1]
        change_voters(kafka, "--command-config", str(kafka.controller(102).file), "add-controller")
        leaving = kafka.controller(101)
        removed = ("--controller-id", "101", "--controller-directory-id", directory_id(leaving))
        change_voters(kafka, "remove-controller", *removed)
        wait_until(lambda: cluster.active() == 102, "the other one leads")
        leaving.stop()
        cluster.make_topic("payments", partitions=1, replicationFactor=1)
        cluster.restart(kafka.broker(1))
        assert "102 leads the quorum of controllers" in cluster.command("check", "cluster")
        cluster.assert_recorded()


def change_voters(kafka: KRaftCluster, *arguments: str) -> None:
    """Change the voters with Kafka's own tool."""
    done = run_tool(METADATA_QUORUM, "--bootstrap-server", kafka.bootstrap_servers, *arguments, timeout_s=DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr


def directory_id(node: KRaftNode) -> str:
    said = (node.data_folder / "meta.properties").read_text().splitlines()
    return next(line.partition("=")[2] for line in said if line.startswith("directory.id="))
