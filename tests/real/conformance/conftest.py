"""Two equal clusters, one led by Kafka's own controller and one by ours: what holds for both is what Kafka does.

Their brokers have a listener among themselves and another one for clients, by which the tests come. Clusters with one
listener for everything are what the tests in `tests/real/controller` have.

A test that takes `cluster` runs on each of them, first all tests on one and then all on the other. A test that is
marked `ours_only` names something that we do otherwise than Kafka's controller, or that only we promise; what only our
process can show (its logs, its settings) belongs to `tests/real/controller`.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import CLIENTS_APART
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, connected_client
from devcluster.running.processes import wait_until
from tests.real.conformance.at_clients_listener import everybody_answers_it
from tests.real.conformance.clusters import LOG_DIRECTORIES, ConformanceCluster

__all__ = ["ConformanceCluster", "cluster", "started_cluster"]

_BROKERS = 3
_PROPERTIES = {
    # A broker that cannot hand over everything gives up soon; nothing moves but what a test asks for.
    "controlled.shutdown.retry.backoff.ms": 100,
    "auto.leader.rebalance.enable": "false",
    "log.flush.offset.checkpoint.interval.ms": 500,  # how soon a lost log directory is noticed
    "default.replication.factor": _BROKERS,
    "offsets.topic.replication.factor": _BROKERS,
    "transaction.state.log.replication.factor": _BROKERS,
    "transaction.state.log.min.isr": 2,
}


# What Kafka's own controller does is the same at each of our commits: a sample of its cases holds the tests to it.
KAFKAS_OWN = pytest.param("kafka", marks=pytest.mark.matrix("conformance of Kafka's own controller"))


@pytest.fixture(scope="session", params=[KAFKAS_OWN, "kontroller"])
def started_cluster(
    request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper
) -> Iterator[ConformanceCluster]:
    """The cluster of one of the two controllers, as long as tests ask for it."""
    chroot = f"/conformance-{request.param}"
    with (
        KafkaCluster(
            servers_folder, zookeeper, brokers=0, properties=_PROPERTIES, chroot=chroot, listeners=CLIENTS_APART
        ) as kafka,
        connected_client(kafka.zookeeper_connect) as client,
        ExitStack() as started,
    ):
        for number in range(1, _BROKERS + 1):
            folder = servers_folder.data(f"conformance-{request.param}-broker-{number}")
            kafka.add_broker(number, properties={"log.dirs": ",".join(str(folder / name) for name in LOG_DIRECTORIES)})
        kafka.start()
        own: ControllerProcess | None = None
        if request.param == "kontroller":
            own = ControllerProcess(
                servers_folder,
                kafka.zookeeper_connect,
                name="conforming-controller",
                settings={"auto_leader_rebalance_enable": False},
                listeners=CLIENTS_APART,
            )
            started.enter_context(own)
        yield ConformanceCluster(kafka=kafka, znodes=ClusterZnodes(client), own_controller=own)


@pytest.fixture
def cluster(started_cluster: ConformanceCluster) -> ConformanceCluster:
    """The cluster, all brokers alive and the controller in its role, whatever the last test left."""
    make_whole(started_cluster)
    return started_cluster


def make_whole(cluster: ConformanceCluster) -> None:
    """Starts what does not run, and waits until every node knows the controller and all brokers."""
    cluster.kafka.start()
    own = cluster.own_controller
    if own is not None and not own.process.is_running:
        own.restart_whole()
    wait_until(lambda: cluster.znodes.controller() in cluster.controller_ids, "the controller", deadline_s=60)
    # Until brokers have heard of each other and of a new controller, they send clients to the one before.
    everybody_answers_it(cluster)
