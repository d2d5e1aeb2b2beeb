"""Two operators on real servers: one works, the other takes over, and the former leader writes nothing afterwards."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from typing import Any

import pytest

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.kubernetes import KubernetesApi, KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from tests.real.operator.operated import (
    KINDS,
    NAMESPACE,
    RELEASE,
    Objects,
    Operator,
    operate_namespace,
    run_operator,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

LEASE = f"{RELEASE}-operator"
TOPICS = 30
BEFORE_THE_STOP = 8


@pytest.fixture(scope="module")
def kafka(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[KafkaCluster]:
    """A broker under our controller."""
    with ExitStack() as stack:
        cluster = KafkaCluster(servers_folder, zookeeper, brokers=1, chroot="/led")
        with zookeeper.client() as client:
            client.ensure_path("/led")
        stack.enter_context(ControllerProcess(servers_folder, cluster.zookeeper_connect, name="led-controller"))
        yield stack.enter_context(cluster)


@pytest.fixture
def znodes(kafka: KafkaCluster) -> Iterator[ClusterZnodes]:
    with open_client(kafka.zookeeper_connect) as client:
        yield ClusterZnodes(client)


@pytest.fixture
def objects(kubernetes_api: KubernetesCluster, kafka: KafkaCluster) -> Iterator[Objects]:
    with operate_namespace(kubernetes_api, kafka.zookeeper_connect) as found:
        yield found
    kubernetes_api.kubectl("delete", "lease", LEASE, "--namespace", NAMESPACE, "--ignore-not-found")


@pytest.fixture
def operators(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects
) -> Iterator[tuple[Operator, Operator]]:
    """The working operator, and the standby: the first has the lease before the second starts."""
    with run_operator(servers_folder, kubernetes_api, lease=LEASE) as first:
        wait_until(lambda: holder(kubernetes_api) is not None, "somebody has the lease")
        with run_operator(servers_folder, kubernetes_api, lease=LEASE) as second:
            yield first, second


def lease(api: KubernetesCluster) -> dict[str, Any]:
    """Return the spec of the Lease; empty if there is none."""
    leases = api.get("leases", "--namespace", NAMESPACE)["items"]
    return next((each["spec"] for each in leases if each["metadata"]["name"] == LEASE), {})


def holder(api: KubernetesCluster) -> str | None:
    found: str | None = lease(api).get("holderIdentity")
    return found


def find_creation_time(znodes: ClusterZnodes, topic: str) -> float:
    """Return the creation time of a topic's znode, by ZooKeeper's clock, which is this machine's."""
    _, stat = znodes.client.get(f"/brokers/topics/{topic}")
    return float(stat.ctime) / 1000


def a_topic(objects: Objects, name: str) -> None:
    objects.apply("KafkaTopic", name, {"partitions": 2, "replicationFactor": 1})


def everything(api: KubernetesCluster, znodes: ClusterZnodes) -> dict[str, Any]:
    """Return each object and each znode that an operator may write, with its version, and the events."""
    found = {
        f"{kind} {each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for kind in (*KINDS, "events")
        for each in api.get(kind, "--namespace", NAMESPACE)["items"]
    }
    for path in ("/admin", "/brokers/topics", "/config", "/kontroller/operators"):
        found |= _znodes(znodes, path)
    return found


def when_calm(api: KubernetesCluster, znodes: ClusterZnodes) -> dict[str, Any]:
    """Return everything when nobody writes any more: the KafkaCluster's counts follow with a delay."""
    seen = [everything(api, znodes), everything(api, znodes)]

    def is_calm() -> bool:
        seen.append(everything(api, znodes))
        return seen[-1] == seen[-2] == seen[-3]

    wait_until(is_calm, "nobody writes")
    return seen[-1]


def _znodes(znodes: ClusterZnodes, path: str) -> dict[str, Any]:
    _, stat = znodes.client.get(path)
    found: dict[str, Any] = {path: (stat.mzxid, stat.pzxid)}
    for name in znodes.client.get_children(path):
        found |= _znodes(znodes, f"{path}/{name}")
    return found


def test_who_stands_by_writes_nothing(operators: tuple[Operator, Operator], objects: Objects) -> None:
    _, second = operators
    a_topic(objects, "made-by-the-leader")
    objects.wait_ready("kafkatopic", "made-by-the-leader")
    assert not second.writes()
    assert second.process.is_running


def test_a_leader_that_is_stopped_in_its_work_is_followed_and_writes_nothing_when_it_wakes(
    operators: tuple[Operator, Operator], objects: Objects, kubernetes_api: KubernetesCluster, znodes: ClusterZnodes
) -> None:
    first, second = operators
    objects.wait_ready("kafkacluster", "demo")
    for number in range(BEFORE_THE_STOP):
        a_topic(objects, f"stopped-{number}")
    # In the middle of its writes.
    wait_until(lambda: first.writes()["transact_many"] >= 3, "the first operator works")
    first.process.send_signal(signal.SIGSTOP)
    of_the_first = lease(kubernetes_api)
    for number in range(BEFORE_THE_STOP, TOPICS):
        a_topic(objects, f"stopped-{number}")
    for number in range(TOPICS):
        objects.wait_ready("kafkatopic", f"stopped-{number}")
    assert second.writes()["transact_many"] >= TOPICS - BEFORE_THE_STOP
    of_the_second = lease(kubernetes_api)
    assert of_the_second["leaseTransitions"] == of_the_first["leaseTransitions"] + 1
    # The second one waits out the lease, and acts only afterwards. When it acts depends on the machine's load.
    renewed_at, acquired_at = (
        datetime.fromisoformat(of_the_first["renewTime"]),
        datetime.fromisoformat(of_the_second["acquireTime"]),
    )
    assert acquired_at >= renewed_at + timedelta(seconds=of_the_first["leaseDurationSeconds"])
    first_act = min(find_creation_time(znodes, f"stopped-{number}") for number in range(BEFORE_THE_STOP, TOPICS))
    assert first_act > acquired_at.timestamp()

    before = when_calm(kubernetes_api, znodes)
    first.process.send_signal(signal.SIGCONT)
    first.wait_until_dead()
    assert everything(kubernetes_api, znodes) == before
    assert first.process.exit_code == 1
    # It finds first either that it lost the lease, or that its watches stood still for too long.
    assert any(words in first.log().splitlines()[-1] for words in ("lease", "the watches ended"))
    a_topic(objects, "after-the-end-of-the-first")
    objects.wait_ready("kafkatopic", "after-the-end-of-the-first")


def test_who_ends_in_good_order_is_followed_at_once(
    operators: tuple[Operator, Operator], objects: Objects, kubernetes_api: KubernetesCluster
) -> None:
    first, second = operators
    before = holder(kubernetes_api)
    first.process.send_signal(signal.SIGTERM)
    first.wait_until_dead()
    assert first.process.exit_code == 0
    wait_until(lambda: holder(kubernetes_api) not in (None, before), "the second one leads")
    a_topic(objects, "made-by-the-second")
    objects.wait_ready("kafkatopic", "made-by-the-second")
    assert second.writes()


def test_an_api_server_that_was_away_finds_one_leader_when_it_is_back(
    operators: tuple[Operator, Operator], objects: Objects, kubernetes_api: KubernetesCluster
) -> None:
    if not isinstance(kubernetes_api, KubernetesApi):
        pytest.skip("it needs an API server of its own")
    first, second = operators
    objects.wait_ready("kafkacluster", "demo")
    kubernetes_api.process.send_signal(signal.SIGSTOP)
    try:
        first.wait_until_dead()
    finally:
        kubernetes_api.process.send_signal(signal.SIGCONT)
    assert second.process.is_running, "who stands by waits"
    a_topic(objects, "made-after-the-outage")
    objects.wait_ready("kafkatopic", "made-after-the-outage")
    assert second.writes()


def test_a_right_that_is_missing_is_said(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, objects: Objects
) -> None:
    kubernetes_api.kubectl("delete", "rolebinding", f"{RELEASE}-operator-lease", "--namespace", NAMESPACE)
    kubeconfig = kubernetes_api.service_account_kubeconfig(NAMESPACE, f"{RELEASE}-operator")
    operator = Operator(servers_folder, kubeconfig, lease=LEASE)
    try:
        operator.process.spawn()
        operator.wait_until_dead()
        assert operator.process.exit_code == 1
        assert "leases.coordination.k8s.io" in operator.log()
    finally:
        operator.close()
