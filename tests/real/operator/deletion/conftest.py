"""A cluster with ZooKeeper and one without, of two brokers each."""

from collections.abc import Iterator

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper

WITH_ZOOKEEPER, WITHOUT_ZOOKEEPER = "with-zookeeper", "without-zookeeper"
Clusters = dict[str, KafkaCluster | KRaftCluster]


@pytest.fixture(scope="module")
def clusters(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[Clusters]:
    with (
        KafkaCluster(servers_folder, zookeeper, brokers=2, chroot="/deleting") as with_zookeeper,
        KRaftCluster(servers_folder, brokers=2, combined=True, name="deleting") as without_zookeeper,
    ):
        yield {WITH_ZOOKEEPER: with_zookeeper, WITHOUT_ZOOKEEPER: without_zookeeper}
