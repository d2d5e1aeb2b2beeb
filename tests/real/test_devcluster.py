"""The development cluster itself: its servers keep their data, report failures, and never outlive their starter."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from devcluster.clients.tools import TOPICS, run_tool
from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kubernetes import CommandError, KubernetesCluster
from devcluster.clusters.kubernetes import kubernetes_api as own_or_given_cluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.ports import accepts, release_port, reserve_port
from devcluster.running.processes import StartError, wait_until
from devcluster.waiting import health_gate
from devcluster.waiting.health_gate import HealthGate, LeftBehind
from devcluster.waiting.under_load import nothing_lost
from tests.real.conftest import StartKafka

pytestmark = pytest.mark.real

_READER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [""], resources: [configmaps], verbs: [list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: default}
"""


@pytest.fixture
def running_command() -> Iterator["subprocess.Popen[str]"]:
    """`python -m devcluster up` with a ZooKeeper and no brokers."""
    command = [sys.executable, "-m", "devcluster", "up", "--brokers", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_zookeeper_keeps_its_data_over_a_stop_and_over_a_kill(servers_folder: RunFolder) -> None:
    with ZooKeeper(servers_folder, name="restarted-zookeeper") as server:
        with server.client() as client:
            client.create("/kept", b"value")
        server.restart()
        server.kill()
        server.start()
        with server.client() as client:
            assert client.get("/kept")[0] == b"value"


def test_brokers_register_and_serve_the_stock_tools(start_kafka: StartKafka) -> None:
    kafka = start_kafka(brokers=2, racks=["a", "b"])
    bootstrap = ("--bootstrap-server", kafka.bootstrap_servers)
    created = run_tool(TOPICS, *bootstrap, "--create", "--topic", "orders", "--replication-factor", "2")
    assert created.returncode == 0, created.stderr
    assert run_tool(TOPICS, *bootstrap, "--list").stdout.split() == ["orders"]


def test_a_killed_broker_comes_back_on_its_port_and_no_acknowledged_value_is_lost(start_kafka: StartKafka) -> None:
    kafka = start_kafka(brokers=3, properties={"min.insync.replicas": 2, "num.partitions": 3})
    bootstrap = ("--bootstrap-server", kafka.bootstrap_servers)
    run_tool(TOPICS, *bootstrap, "--create", "--topic", "load", "--replication-factor", "3")
    with nothing_lost(kafka.bootstrap_servers, "load", more_than=50):
        address = kafka.broker(1).address
        kafka.broker(1).kill()
        kafka.broker(1).start()
    assert kafka.broker(1).address == address


def test_the_session_of_a_broker_ends_when_it_is_killed_or_on_purpose(start_kafka: StartKafka) -> None:
    kafka = start_kafka(brokers=2)
    with open_client(kafka.zookeeper_connect) as client:

        def list_registered() -> set[str]:
            return set(client.get_children("/brokers/ids"))

        kafka.broker(1).kill()
        assert list_registered() == {"2"}
        kafka.broker(1).start()
        kafka.broker(1).kill(ends_session=False)
        assert list_registered() == {"1", "2"}
        kafka.broker(1).start()
        before = client.exists("/brokers/ids/2").ephemeralOwner
        kafka.broker(2).pause()
        kafka.broker(2).end_session()
        assert list_registered() == {"1"}
        kafka.broker(2).resume()
        wait_until(lambda: list_registered() == {"1", "2"}, "the broker registers itself in another session")
        assert client.exists("/brokers/ids/2").ephemeralOwner != before


def test_the_health_gate_starts_what_a_test_killed_and_fails_for_what_it_left_standing_still(
    start_kafka: StartKafka,
) -> None:
    kafka = start_kafka(brokers=2)
    with open_client(kafka.zookeeper_connect) as client:
        gate = HealthGate(kafka=kafka, znodes=ClusterZnodes(client))
        gate.open()
        kafka.broker(1).kill()
        gate.close()
        assert kafka.broker(1).process.is_running
        kafka.broker(2).pause()
        with pytest.raises(LeftBehind, match=r"left standing still: .*broker-2"):
            gate.close()
        gate.close()


def test_the_health_gate_fails_for_a_throttle_that_a_test_left(
    start_kafka: StartKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = start_kafka(brokers=1)
    monkeypatch.setattr(health_gate, "wait_until", partial(wait_until, silence_s=1))
    with open_client(kafka.zookeeper_connect) as client:
        gate = HealthGate(kafka=kafka, znodes=ClusterZnodes(client))
        gate.close()
        rate = {"version": 1, "config": {"leader.replication.throttled.rate": "1000"}}
        client.create("/config/brokers/1", json.dumps(rate).encode(), makepath=True)
        with pytest.raises(LeftBehind, match="replication is throttled on the brokers: 1"):
            gate.close()
        client.delete("/config/brokers/1")
        gate.close()


def test_a_failed_start_names_its_log_and_stops_what_was_started(
    servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str
) -> None:
    cluster = KafkaCluster(servers_folder, zookeeper, brokers=1, chroot=zookeeper_chroot)
    broken = cluster.add_broker(2, properties={"num.io.threads": 0})
    with pytest.raises(StartError) as failure, cluster:
        pytest.fail("a broker without I/O threads must not start")
    message = str(failure.value)
    assert str(broken.process.log_path) in message
    assert "num.io.threads" in message
    assert not cluster.broker(1).process.is_running
    assert not accepts(cluster.broker(1).port)


def test_two_clusters_run_side_by_side(servers_folder: RunFolder, start_kafka: StartKafka) -> None:
    first = start_kafka(brokers=1)
    with (
        ZooKeeper(servers_folder, name="second-zookeeper") as zookeeper,
        KafkaCluster(servers_folder, zookeeper, brokers=1, name="second") as second,
    ):
        run_tool(TOPICS, "--bootstrap-server", first.bootstrap_servers, "--create", "--topic", "only-in-the-first")
        listed = run_tool(TOPICS, "--bootstrap-server", second.bootstrap_servers, "--list")
        assert (listed.returncode, listed.stdout.split()) == (0, [])


def test_another_process_gets_other_ports() -> None:
    script = "from devcluster.running.ports import reserve_port; print(*(reserve_port() for _ in range(40))); input()"
    command = [sys.executable, "-c", script]
    mine = [reserve_port() for _ in range(40)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        others = [int(port) for port in other.stdout.readline().split()]
        other.communicate("\n")
    for port in mine:
        release_port(port)
    assert len(set(mine + others)) == 80


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_the_process_that_started_it(
    running_command: "subprocess.Popen[str]", signum: signal.Signals
) -> None:
    assert running_command.stdout is not None
    port = int(running_command.stdout.readline().rsplit(":", 1)[1])
    running_command.stdout.readline()
    servers = _children(running_command.pid)
    assert servers
    assert accepts(port)
    running_command.send_signal(signum)
    running_command.wait(30)
    wait_until(lambda: not any(map(_is_alive, servers)), "the servers are gone")


def test_a_service_account_has_the_rights_of_its_role_and_no_others(kubernetes_api: KubernetesCluster) -> None:
    kubernetes_api.kubectl("apply", "-f", "-", stdin=_READER)
    reader = kubernetes_api.service_account_kubeconfig("default", "reader")
    assert kubernetes_api.kubectl("get", "configmaps", "-o", "name", kubeconfig=reader) == ""
    with pytest.raises(CommandError, match="forbidden"):
        kubernetes_api.kubectl("get", "secrets", kubeconfig=reader)


def test_a_given_cluster_is_used_and_left_running(
    kubernetes_api: KubernetesCluster, servers_folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubernetes_api.kubeconfig))
    with own_or_given_cluster(servers_folder) as given:
        assert given.get("namespace", "default") == kubernetes_api.get("namespace", "default")
    assert kubernetes_api.get("namespace", "default")["status"]["phase"] == "Active"


def test_helm_installs_a_chart(kubernetes_api: KubernetesCluster, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("{apiVersion: v2, name: tiny, version: 0.1.0}")
    (tmp_path / "templates" / "map.yaml").write_text(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: from-a-chart}, data: {release: {{ .Release.Name }}}}"
    )
    kubernetes_api.helm("install", "first", str(tmp_path))
    assert kubernetes_api.get("configmap", "from-a-chart")["data"] == {"release": "first"}
    kubernetes_api.helm("uninstall", "first")


def _children(pid: int) -> list[int]:
    return [int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in _words(task / "children")]


def _words(path: Path) -> list[str]:
    return path.read_text().split()


def _is_alive(pid: int) -> bool:
    """Return True if a process is alive; a zombie that nobody has waited for counts as dead."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
