"""The operator on a real API server and real brokers, in three kinds of clusters that all files here share.

These are: with ZooKeeper under Kafka's own controller, with ZooKeeper under ours, and without ZooKeeper. A test without
a mark runs on all three. One process runs all tests of a cluster, file by file, so each cluster starts once.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import pytest

from devcluster.building.java import KAFKA_VERSION, KRAFT_VERSION
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.waiting.health_gate import HealthGate
from tests.real.operator.kinds.clusters import CLUSTERS
from tests.real.operator.operated import Objects, Operator, operate_namespace, run_operator
from tests.real.operator.witnesses import Witness, Znodes, where, witness_of

_numbers = count(1)


@pytest.fixture(scope="package")
def controllers() -> list[ControllerProcess]:
    """Our controllers that run: that of `operated_cluster`, if it has one."""
    return []


@pytest.fixture(scope="package", params=CLUSTERS)
def operated_cluster(
    request: pytest.FixtureRequest,
    servers_folder: RunFolder,
    zookeeper: ZooKeeper,
    controllers: list[ControllerProcess],
) -> Iterator[Any]:
    """Three brokers under Kafka's own controller, or under ours, or three without ZooKeeper and as many controllers."""
    controller, _, release = request.param.partition("-")
    if controller == "KRaft":
        name = f"operated-{request.param}".lower()
        with KRaftCluster(servers_folder, name=name, version=release or KRAFT_VERSION) as kraft:
            yield kraft
        return
    chroot = f"/operated-by-{request.param}".lower()
    with ExitStack() as stack:
        version = release or KAFKA_VERSION
        cluster = KafkaCluster(servers_folder, zookeeper, brokers=3, chroot=chroot, version=version)
        with zookeeper.client() as client:
            client.ensure_path(chroot)
        if controller == "Kontroller":
            ours = ControllerProcess(servers_folder, cluster.zookeeper_connect, name="operated-controller")
            controllers.append(stack.enter_context(ours))
            stack.callback(controllers.remove, ours)
        yield stack.enter_context(cluster)


@pytest.fixture(scope="package")
def kafka(operated_cluster: Any) -> Any:
    """The cluster of this run of the test."""
    return operated_cluster


@pytest.fixture(scope="package")
def witness(kafka: KafkaCluster | KRaftCluster) -> Iterator[Witness]:
    with witness_of(kafka) as found:
        yield found


@pytest.fixture(scope="package")
def znodes(witness: Witness) -> Znodes:
    """The znodes of a cluster with ZooKeeper."""
    assert isinstance(witness, Znodes)
    return witness


@pytest.fixture(scope="package")
def objects(kubernetes_api: KubernetesCluster, kafka: KafkaCluster | KRaftCluster) -> Iterator[Objects]:
    """The namespace with the KafkaCluster `demo`; emptied at the end, with the remaining finalizers."""
    with operate_namespace(kubernetes_api, **where(kafka)) as found:
        yield found


@pytest.fixture
def healthy(kafka: Any, witness: Witness, controllers: list[ControllerProcess]) -> Iterator[None]:
    """A healthy cluster for each test, which is responsible for the state it leaves; without ZooKeeper Kafka takes care
    of it.
    """
    if not isinstance(kafka, KafkaCluster) or not isinstance(witness, Znodes):
        yield
        return
    gate = HealthGate(kafka=kafka, znodes=witness, controller=next(iter(controllers), None))
    gate.open()
    yield
    gate.close()


@pytest.fixture
def operator(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects, healthy: None
) -> Iterator[Operator]:
    """A running operator with exactly the rights that the chart gives it; nothing unexpected may happen to it."""
    with run_operator(servers_folder, kubernetes_api) as running:
        yield running


@pytest.fixture
def topic() -> str:
    """The test's own topic name."""
    return f"topic-{next(_numbers)}"
