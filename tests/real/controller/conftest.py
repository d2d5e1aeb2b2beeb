"""Six brokers for all tests of the controller, and our controller in its role while a test runs."""

from collections.abc import Iterator

import pytest

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.waiting.health_gate import HealthGate
from tests.real.controller.clusters import OurCluster


@pytest.fixture(scope="session")
def six_brokers(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[KafkaCluster]:
    """Brokers 1 to 6; a test that stops one starts it again, or the next test does."""
    with KafkaCluster(servers_folder, zookeeper, brokers=6, chroot="/controlled") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def controller_process(servers_folder: RunFolder, six_brokers: KafkaCluster) -> Iterator[ControllerProcess]:
    """Our controller. Administrators come from 127.0.0.1; this machine has other addresses for strangers."""
    settings = {"admin_cidr": "127.0.0.1/32"}
    with ControllerProcess(servers_folder, six_brokers.zookeeper_connect, settings=settings) as controller:
        yield controller


@pytest.fixture
def our_cluster(six_brokers: KafkaCluster, controller_process: ControllerProcess) -> Iterator[OurCluster]:
    """All six brokers alive and our controller in its role."""
    with open_client(six_brokers.zookeeper_connect) as client:
        znodes = ClusterZnodes(client)
        gate = HealthGate(kafka=six_brokers, znodes=znodes, controller=controller_process)
        gate.open()
        yield OurCluster(kafka=six_brokers, controller=controller_process, znodes=znodes)
        gate.close()
        log = controller_process.process.log_path.read_text(errors="replace")
        assert "unexpected error" not in log, "the controller met an error that it did not understand"
