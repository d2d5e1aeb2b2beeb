"""A ZooKeeper with certificates and logins, and two clusters on it."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_zookeeper import SecuredZooKeeper
from tests.real.secured.clusters import BY_KAFKA, BY_US


@pytest.fixture(scope="session")
def zookeeper_with_users(servers_folder: RunFolder) -> Iterator[SecuredZooKeeper]:
    with SecuredZooKeeper(servers_folder) as server:
        yield server


@pytest.fixture(scope="session")
def secured(servers_folder: RunFolder, zookeeper_with_users: SecuredZooKeeper) -> Iterator[dict[str, KafkaCluster]]:
    """Kafka under its own controller and under ours, by their chroots."""
    server = zookeeper_with_users
    with ExitStack() as stack:
        clusters = {}
        for chroot in (BY_KAFKA, BY_US):
            properties = {**server.broker_properties(), "zookeeper.connect": server.secure_connect + chroot}
            clusters[chroot] = KafkaCluster(
                servers_folder, server, brokers=2, chroot=chroot, properties=properties, env=server.broker_env
            )
            stack.callback(clusters[chroot].close)
        settings = {"properties": str(server.write_properties())}
        stack.enter_context(
            ControllerProcess(
                servers_folder, server.secure_connect + BY_US, name="secured-controller", settings=settings
            )
        )
        for cluster in clusters.values():
            cluster.start()
        yield clusters
