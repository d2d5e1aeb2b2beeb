"""Every HTTP port of every process: slow and half requests, too large ones, and thousands of connections.

Readers without a token or a certificate, and with those of others, are in `test_https.py`.
"""

import sys
from collections.abc import Iterator

import pytest

from devcluster.clusters.kontroller import ControllerProcess, OperatorProcess, RecorderProcess
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.ports import accepts, release_port, reserve_port
from devcluster.running.processes import ManagedProcess
from tests.real.ports.http_clients import STRANGERS, HttpPort, assert_little_is_taken
from tests.real.ports.https_site import serve_https
from tests.real.ports.strangers import is_closed_by_server, send_until_closed

CHROOT = "/http-ports"
PROCESSES = ("controller", "controller HTTPS", "recorder", "broker", "watch", "operator metrics", "operator probes")


@pytest.fixture(scope="module")
def controller(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[ControllerProcess]:
    connect = f"{zookeeper.connect}{CHROOT}"
    with ControllerProcess(servers_folder, connect, name="http-ports-controller") as process:
        yield process


@pytest.fixture(scope="module", params=PROCESSES)
def port(
    request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper, controller: ControllerProcess
) -> Iterator[HttpPort]:
    """The HTTP port of a process of each kind, in turn."""
    connect = f"{zookeeper.connect}{CHROOT}"
    match request.param:
        case "controller":
            yield HttpPort(number=controller.metrics_port, process=controller.process)
        case "controller HTTPS":
            with serve_https(servers_folder, f"{connect}-https", "http-ports-https") as site:
                yield site.port
        case "recorder":
            folder = servers_folder.data("http-ports-journal")
            with RecorderProcess(servers_folder, connect, folder, name="http-ports-recorder") as recorder:
                yield HttpPort(number=recorder.metrics_port, process=recorder.process)
        case "broker":
            with PythonBroker(servers_folder, connect, 1, name="http-ports-broker") as broker:
                yield HttpPort(number=broker.metrics_port, process=broker.process)
        case "watch":
            yield from _serve_watch(servers_folder)
        case kind:
            kubernetes: KubernetesCluster = request.getfixturevalue("kubernetes_api")
            name = f"http-ports-{kind.replace(' ', '-')}"
            with OperatorProcess(servers_folder, kubernetes.kubeconfig, namespaces=["default"], name=name) as operator:
                number = operator.liveness_port if kind == "operator probes" else operator.metrics_port
                yield HttpPort(number=number, process=operator.process)


def _serve_watch(servers_folder: RunFolder) -> Iterator[HttpPort]:
    number, folder = reserve_port(), servers_folder.data("http-ports-watched")
    process = ManagedProcess(
        "http-ports-watch",
        [
            sys.executable,
            "-m",
            "kontroller",
            "history",
            "watch",
            "--journal",
            str(folder),
            "--metrics-port",
            str(number),
        ],
        log_path=servers_folder.log("http-ports-watch"),
        ready=lambda: accepts(number),
    )
    process.start()
    try:
        yield HttpPort(number=number, process=process)
    finally:
        process.stop()
        release_port(number)


@pytest.mark.parametrize("addresses", [STRANGERS[:1], STRANGERS], ids=["one address", "many addresses"])
def test_thousands_of_half_requests_take_little_and_a_probe_is_answered(
    port: HttpPort, addresses: tuple[str, ...]
) -> None:
    with assert_little_is_taken(port) as check, port.send_halves(4000, addresses=addresses):
        assert port.probe() == 200
        check()


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /healthz HTTP/1.1\r\n" + b"x: " + b"y" * (1 << 20),
        b"POST /healthz HTTP/1.1\r\nHost: here\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * (1 << 20),
    ],
    ids=["head", "body"],
)
def test_a_request_that_is_too_large_ends_its_connection(port: HttpPort, sent: bytes) -> None:
    with assert_little_is_taken(port), port.send_halves(20) as connections:
        for each in connections:
            send_until_closed(each, sent)
        assert port.probe() == 200


def test_silent_connections_and_half_requests_are_closed(port: HttpPort) -> None:
    with port.send_halves(20, sent=b"") as silent, port.send_halves(20) as halves:
        assert all(is_closed_by_server(each) for each in (*silent, *halves))
