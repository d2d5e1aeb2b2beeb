"""The way to KRaft: from our controller to Kafka's, and by Kafka's own migration to a cluster without ZooKeeper."""

from contextlib import ExitStack, closing

import pytest

from devcluster.clients.tools import CONFIGS, run_tool
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess, run_command
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import serve_topic, wait_until_controlled_by, wait_until_served
from tests.real.versions.kraft_nodes import CONTROLLER_ID, Quorum, migrate

pytestmark = [pytest.mark.real, pytest.mark.timeout(400)]

TOPIC = "orders"
PARTITIONS = [0, 1, 2]
FEWER_IN_SYNC = {"min.insync.replicas": 2}


@pytest.mark.parametrize("handed_over", [True, False])
def test_a_cluster_of_ours_is_migrated_to_kraft_under_load_while_our_controller_stands_by(
    servers_folder: RunFolder, zookeeper: ZooKeeper, handed_over: bool
) -> None:
    """A controller that is left running, even one with the role, does no harm: it leaves the role to the quorum."""
    name = "migrated-by-kafka" if handed_over else "migrated-from-ours"
    with (
        KafkaCluster(servers_folder, zookeeper, chroot=f"/{name}", properties=FEWER_IN_SYNC) as kafka,
        ControllerProcess(servers_folder, kafka.zookeeper_connect, name=f"{name}-controller") as ours,
        open_client(kafka.zookeeper_connect) as client,
        ExitStack() as started,
    ):
        znodes = ClusterZnodes(client)
        serve_topic(znodes, TOPIC, [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"retention.ms": "604800000"})
        with nothing_lost(kafka.bootstrap_servers, TOPIC):
            if handed_over:
                done = run_command("controller", "hand-over", "--zookeeper", kafka.zookeeper_connect, "--yes")
                assert done.returncode == 0, done.stdout + done.stderr
            assert (znodes.controller() == ours.controller_id) is not handed_over

            quorum = started.enter_context(closing(Quorum(servers_folder, f"{name}-quorum")))
            quorum.migrate(kafka.zookeeper_connect, znodes.read("/cluster/id")["id"])
            for broker in kafka.brokers.values():
                broker.restart({"zookeeper.metadata.migration.enable": "true", **quorum.known_to_all})
                wait_until_served(znodes, TOPIC, PARTITIONS)
            wait_until_controlled_by(znodes, CONTROLLER_ID)
            wait_until(lambda: "Completed migration of metadata from ZooKeeper" in quorum.log, "migrated")
            # From here on the quorum writes both; each broker leaves ZooKeeper in turn.
            for broker in kafka.brokers.values():
                broker.stop()
                started.enter_context(migrate(servers_folder, broker, quorum))
                wait_until_served(znodes, TOPIC, PARTITIONS)
            assert znodes.controller() == CONTROLLER_ID
            assert ours.process.is_running
            assert "kraft_migration" in ours.process.log_path.read_text()
            quorum.finish()
        described = run_tool(
            CONFIGS, *f"--bootstrap-server {kafka.bootstrap_servers} --describe --topic {TOPIC}".split()
        )
        assert "retention.ms=604800000" in described.stdout, described.stderr
