"""Two equal clusters, one under Kafka's own controller and one under ours: tests pass on both alike.

Brokers have one listener among themselves and one for clients, which the tests use. The tests in `tests/real/controller`
have clusters with one listener for everything.

A test that takes `cluster` runs on both of these clusters: first all tests on one, then all tests on the other. Some
tests, the probes, also run with certificates, logins, ACLs and older releases of the brokers: see `set_ups`. Mark a
test `ours_only` if our controller differs from Kafka's on purpose. A test of our process itself (its logs, its
settings) belongs to `tests/real/controller`.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from devcluster.clients.identity import NOBODY
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import CLIENTS_APART
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.secured_kafka import write_properties_file
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from tests.real.conformance.clusters import LOG_DIRECTORIES, ConformanceCluster
from tests.real.conformance.set_ups import OURS, SET_UPS, release_of, set_ups_of, skip_on_older_releases

__all__ = ["ConformanceCluster", "cluster", "started_cluster"]

_HERE: Final = Path(__file__).parent
_OTHER: Final = pytest.mark.nightly("Kafka's own controller is the record, and set-ups change no procedure")
_BROKERS = 3
_PROPERTIES = {
    # A broker that cannot hand over everything gives up soon.
    "controlled.shutdown.retry.backoff.ms": 100,
    "log.flush.offset.checkpoint.interval.ms": 500,  # how soon a lost log directory is noticed
    "default.replication.factor": _BROKERS,
    "offsets.topic.replication.factor": _BROKERS,
    "transaction.state.log.replication.factor": _BROKERS,
    "transaction.state.log.min.isr": 2,
}


@pytest.hookimpl(tryfirst=True)  # before pytest's own, so that the set-up comes first in a test's id
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that needs a cluster on its set-ups, unless a mark of the test names them."""
    marks = metafunc.definition.iter_markers("parametrize")
    if "started_cluster" in metafunc.fixturenames and not any(mark.args[0] == "started_cluster" for mark in marks):
        test = f"{metafunc.definition.path.relative_to(_HERE).as_posix()}::{metafunc.function.__name__}"
        set_ups = [name if name == OURS else pytest.param(name, marks=_OTHER) for name in set_ups_of(test)]
        metafunc.parametrize("started_cluster", set_ups, indirect=True, scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip_on_older_releases(items, "started_cluster")


@pytest.fixture(scope="session")
def started_cluster(
    request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper
) -> Iterator[ConformanceCluster]:
    """The cluster of a set-up. It stops when no further test uses it."""
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
            identity_file = write_properties_file(secured.files / "client.properties", identity.properties)
            set_up.allow(secured)
        started.enter_context(kafka)
        client = started.enter_context(open_client(kafka.zookeeper_connect))
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
def cluster(started_cluster: ConformanceCluster) -> Iterator[ConformanceCluster]:
    """The healthy cluster. Until brokers know each other and a new controller, they send clients to the one before."""
    started_cluster.health_gate.open()
    yield started_cluster
    started_cluster.health_gate.close()
