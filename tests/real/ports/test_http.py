"""Every HTTP port of every process: slow and half requests, too large ones, thousands of connections, and readers
without the token or with a wrong one.

Certificates are in `test_https.py`, and the operator's webhook is in `test_webhook.py`.
"""

import sys
from collections.abc import Iterator
from urllib.request import Request

import pytest

from devcluster.clusters.kontroller import ControllerProcess, OperatorProcess, RecorderProcess
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.ports import accepts, release_port, reserve_port
from devcluster.running.processes import ManagedProcess
from devcluster.running.scraping import find_value, open_locally
from tests.real.ports.http_clients import (
    BEARER,
    NO_HEADERS,
    STRANGERS,
    TOKEN,
    WRONG_BEARER,
    HttpPort,
    assert_little_is_taken,
)
from tests.real.ports.https_site import serve_https
from tests.real.ports.strangers import SOON_S, is_closed_by_server, send_until_closed

CHROOT = "/http-ports"
PROCESSES = (
    "controller",
    "controller HTTPS",
    "recorder",
    "broker",
    "watch",
    "report",
    "operator metrics",
    "operator probes",
)


class _GuardedRecorder(RecorderProcess):
    """A recorder whose metrics need the token."""

    def metric(self, name: str) -> float | None:
        asked = Request(f"http://127.0.0.1:{self.metrics_port}/metrics", headers=dict(BEARER))
        with open_locally(asked, timeout_s=SOON_S) as answer:
            return find_value(answer.read().decode(), name)


@pytest.fixture(scope="module")
def controller(servers_folder: RunFolder, zookeeper: ZooKeeper) -> Iterator[ControllerProcess]:
    connect = f"{zookeeper.connect}{CHROOT}"
    with ControllerProcess(servers_folder, connect, name="http-ports-controller") as process:
        yield process


@pytest.fixture(scope="module")
def token(servers_folder: RunFolder) -> str:
    """The file of the token of readers."""
    path = servers_folder.data("http-ports-token") / "token"
    path.write_text(TOKEN)
    return str(path)


@pytest.fixture(scope="module", params=PROCESSES)
def port(
    request: pytest.FixtureRequest,
    servers_folder: RunFolder,
    zookeeper: ZooKeeper,
    controller: ControllerProcess,
    token: str,
) -> Iterator[HttpPort]:
    """The HTTP port of a process of each kind, in turn. Metrics need the token, except those of the controller."""
    connect = f"{zookeeper.connect}{CHROOT}"
    match request.param:
        case "controller":
            yield HttpPort(number=controller.metrics_port, process=controller.process, metrics_statuses=(200, 200, 200))
        case "controller HTTPS":
            with serve_https(servers_folder, f"{connect}-https", "http-ports-https") as site:
                yield site.port
        case "recorder":
            folder, options = servers_folder.data("http-ports-journal"), ("--metrics-token-file", token)
            with _GuardedRecorder(
                servers_folder, connect, folder, name="http-ports-recorder", options=options
            ) as recorder:
                yield HttpPort(number=recorder.metrics_port, process=recorder.process)
        case "broker":
            settings = {"metrics_token_file": token}
            with PythonBroker(servers_folder, connect, 1, name="http-ports-broker", settings=settings) as broker:
                yield HttpPort(number=broker.metrics_port, process=broker.process)
        case "watch":
            yield from _run_history(servers_folder, token, "watch", "--journal")
        case "report":
            yield from _run_history(servers_folder, token, "serve", "--report")
        case kind:
            yield from _run_operator(request, servers_folder, token, kind)


def _run_history(servers_folder: RunFolder, token: str, command: str, option: str) -> Iterator[HttpPort]:
    """Run a command of the history that serves HTTP, about an empty folder."""
    number, name = reserve_port(), f"http-ports-{command}"
    arguments = (option, str(servers_folder.data(f"{name}-folder")), "--metrics-port", str(number))
    process = ManagedProcess(
        name,
        [sys.executable, "-m", "kontroller", "history", command, *arguments, "--metrics-token-file", token],
        log_path=servers_folder.log(name),
        ready=lambda: accepts(number),
    )
    process.start()
    try:
        yield HttpPort(number=number, process=process)
    finally:
        process.stop()
        release_port(number)


def _run_operator(
    request: pytest.FixtureRequest, servers_folder: RunFolder, token: str, kind: str
) -> Iterator[HttpPort]:
    kubernetes: KubernetesCluster = request.getfixturevalue("kubernetes_api")
    with OperatorProcess(
        servers_folder,
        kubernetes.kubeconfig,
        namespaces=["default"],
        name=f"http-ports-{kind.replace(' ', '-')}",
        settings={"KONTROLLER_METRICS_TOKEN_FILE": token},
    ) as operator:
        if kind == "operator probes":
            statuses = (404, 404, 404)  # they have no metrics
            yield HttpPort(number=operator.liveness_port, process=operator.process, metrics_statuses=statuses)
        else:
            yield HttpPort(number=operator.metrics_port, process=operator.process)


@pytest.mark.parametrize("addresses", [STRANGERS[:1], STRANGERS], ids=["one address", "many addresses"])
def test_thousands_of_half_requests_take_little_and_probes_and_readers_are_answered(
    port: HttpPort, addresses: tuple[str, ...]
) -> None:
    *_, status = port.metrics_statuses
    with assert_little_is_taken(port) as check, port.send_halves(5000, addresses=addresses):
        assert port.probe() == 200
        assert port.read_status("/metrics", headers=BEARER) == status
        check()


def test_readers_without_the_token_are_refused_where_it_is_needed(port: HttpPort) -> None:
    shown = NO_HEADERS, WRONG_BEARER, BEARER
    assert tuple(port.read_status("/metrics", headers=each) for each in shown) == port.metrics_statuses
    assert port.probe() == 200


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


def test_silent_connections_and_slow_and_half_requests_are_closed(port: HttpPort) -> None:
    with port.send_halves(20, sent=b"") as silent, port.send_halves(20) as halves, port.send_halves(1) as slow:
        send_until_closed(slow[0], b"x", pause_s=1)
        assert all(is_closed_by_server(each) for each in (*silent, *halves))
