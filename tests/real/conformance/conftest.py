"""Two equal clusters, one led by Kafka's own controller and one by ours: what holds for both is what Kafka does.

Their brokers have a listener among themselves and another one for clients, by which the tests come. Clusters with one
listener for everything are what the tests in `tests/real/controller` have.

They are there once in PLAINTEXT, and again for each of `set_ups`: with certificates, logins and ACLs. Of these a commit
runs one file of tests on one of them, `make full` everything. So it is with brokers of older releases, in PLAINTEXT and
with all of it: a commit runs one file with the oldest, `make versions` and `make full` everything.

A test that takes `cluster` runs on each of them, first all tests on one and then all on the other. A test that is
marked `ours_only` names something that we do otherwise than Kafka's controller, or that only we promise; what only our
process can show (its logs, its settings) belongs to `tests/real/controller`.
"""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from devcluster.clients.identity import NOBODY
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import CLIENTS_APART
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import written
from devcluster.clusters.zookeeper import ZooKeeper, connected_client
from devcluster.running.processes import wait_until
from tests.real.conformance.at_clients_listener import everybody_answers_it
from tests.real.conformance.clusters import LOG_DIRECTORIES, ConformanceCluster
from tests.real.conformance.set_ups import (
    KAFKA,
    OLDER_OURS,
    OURS,
    SECURED_KAFKAS,
    SECURED_OURS,
    SET_UPS,
    deal_out,
    release_of,
)

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
KAFKAS_OWN = pytest.param(KAFKA, marks=pytest.mark.matrix("conformance of Kafka's own controller"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the secured clusters, and of those with the oldest brokers, each commit has one for one file of tests."""
    deal_out(config, items, "started_cluster", lambda item: item.path.name)


@pytest.fixture(scope="session", params=[KAFKAS_OWN, OURS, *SECURED_OURS, *SECURED_KAFKAS, *OLDER_OURS])
def started_cluster(
    request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper
) -> Iterator[ConformanceCluster]:
    """The cluster of one of the two controllers, as long as tests ask for it."""
    name = f"conformance-{request.param}"
    controller, _, set_up_as = request.param.partition("-")
    set_up, release = SET_UPS.get(set_up_as), release_of(set_up_as)
    listeners = CLIENTS_APART if set_up is None else set_up.listeners
    settings: dict[str, object] = {"auto_leader_rebalance_enable": False}
    identity, identity_file, user = NOBODY, None, "ANONYMOUS"
    with ExitStack() as started:
        if set_up is None:
            kafka = KafkaCluster(
                servers_folder,
                zookeeper,
                brokers=0,
                properties=_PROPERTIES,
                chroot=f"/{name}",
                listeners=listeners,
                version=release,
            )
        else:
            kafka = secured = set_up.kafka(servers_folder, zookeeper, name=name, properties=_PROPERTIES)
            settings["properties"] = set_up.controllers_properties(secured)
            identity, user = set_up.identity(secured), set_up.principal.removeprefix("User:")
            identity_file = written(secured.files / "client.properties", identity.properties)
            set_up.allow(secured)
        started.enter_context(kafka)
        client = started.enter_context(connected_client(kafka.zookeeper_connect))
        for number in range(1, _BROKERS + 1):
            folder = servers_folder.data(f"{name}-broker-{number}")
            kafka.add_broker(number, properties={"log.dirs": ",".join(str(folder / each) for each in LOG_DIRECTORIES)})
        kafka.start()
        own: ControllerProcess | None = None
        if controller == OURS:
            own = ControllerProcess(
                servers_folder,
                kafka.zookeeper_connect,
                name=f"{name}-controller",
                settings=settings,
                listeners=listeners,
            )
            started.enter_context(own)
        yield ConformanceCluster(
            kafka=kafka,
            znodes=ClusterZnodes(client),
            own_controller=own,
            identity=identity,
            user=user,
            identity_file=identity_file,
            release=release,
        )


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
