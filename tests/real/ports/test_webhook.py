"""The operator's webhook against each attack of strangers: the API server is answered meanwhile, and the process holds
little memory and few descriptors.

`ATTACKS` is the table. The API server is a client that shows its certificate; `real/operator/admission` has a real one.
"""

import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.client import HTTPSConnection
from typing import Final

import pytest

from devcluster.clusters.certificates import Authority, CertificateFiles
from devcluster.clusters.kontroller import OperatorProcess
from devcluster.clusters.kubernetes import KubernetesCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.ports import accepts, release_port, reserve_port
from devcluster.running.processes import wait_until
from tests.real.operator.operated import PROJECT
from tests.real.ports.strangers import SOON_S, STRANGERS, Holdings, connect_strangers
from tests.unit.operator.admission.test_server import review

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

API_SERVER: Final = "api-server"
_HEAD: Final = b"POST /validate HTTP/1.1\r\nHost: here\r\n"
_MOST_LOG_BYTES: Final = 64 << 10
_MOST_HTTP_CONNECTIONS: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """Connections of strangers, which stay open."""

    connections: int = 300
    shakes_hands: bool = True
    shows_certificate: bool = False
    """They show a certificate of the right authority, with another name than the API server's."""
    sent: bytes = b""


ATTACKS: Final = {
    "no login": Attack(connections=1_000),
    "half a handshake": Attack(shakes_hands=False, sent=b"\x16\x03\x01"),
    "slow": Attack(sent=b"P"),
    "half a message": Attack(sent=_HEAD + b"Content-Length: 1000000\r\n\r\n" + bytes(30_000)),
    "too large": Attack(connections=50, sent=_HEAD + b"Content-Length: 100000000\r\n\r\n" + bytes(1 << 20)),
    "too large a head": Attack(connections=50, sent=_HEAD + b"x: " + bytes(1 << 20)),
    "5,000 connections": Attack(connections=5_000, shakes_hands=False, sent=b"\x16\x03\x01"),
    "wrong role": Attack(shows_certificate=True, sent=_HEAD + b"Content-Length: 2\r\n\r\n{}"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(Holdings):
    """The webhook of an operator."""

    port: int
    authority: Authority

    def make_context(self, shown: CertificateFiles | None = None) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.authority.certificate)
        if shown is not None:
            context.load_cert_chain(shown.certificate, shown.key)
        return context

    def ask(self, name: str) -> int:
        """Ask with a certificate of this name. Return the status of the answer."""
        context = self.make_context(self.authority.issue(name))
        connection = HTTPSConnection("127.0.0.1", self.port, context=context, timeout=SOON_S)
        connection.request("POST", "/validate", body=json.dumps(review()))
        status = connection.getresponse().status
        connection.close()
        return status


@pytest.fixture(scope="module")
def webhook(
    servers_folder: RunFolder, kubernetes_api: KubernetesCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Webhook]:
    authority, port = Authority(tmp_path_factory.mktemp("webhook")), reserve_port()
    own = authority.issue("webhook", "IP:127.0.0.1")
    settings = {
        "KONTROLLER_WEBHOOK": f"https://127.0.0.1:{port}",
        "KONTROLLER_WEBHOOK_CERTIFICATE": str(own.certificate),
        "KONTROLLER_WEBHOOK_KEY": str(own.key),
        "KONTROLLER_WEBHOOK_CLIENT_CA": str(authority.certificate),
        "KONTROLLER_WEBHOOK_CLIENT_NAME": API_SERVER,
    }
    kubernetes_api.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(PROJECT / "crds"))
    kubernetes_api.wait_until_established()
    try:
        with OperatorProcess(
            servers_folder,
            kubernetes_api.kubeconfig,
            namespaces=["default"],
            name="attacked-webhook",
            settings=settings,
        ) as operator:
            wait_until(lambda: accepts(port), "the webhook listens")
            yield Webhook(process=operator.process, port=port, authority=authority)
    finally:
        release_port(port)


@pytest.mark.parametrize("name", ATTACKS)
def test_strangers_take_little_and_the_api_server_is_answered(webhook: Webhook, name: str) -> None:
    attack = ATTACKS[name]
    context = webhook.make_context(webhook.authority.issue("stranger") if attack.shows_certificate else None)

    def prepare(connection: socket.socket) -> socket.socket:
        return context.wrap_socket(connection, server_hostname="127.0.0.1") if attack.shakes_hands else connection

    attacking = partial(connect_strangers, webhook.port, attack.connections, sent=attack.sent, prepare=prepare)
    descriptors = _MOST_HTTP_CONNECTIONS + 16
    with webhook.assert_little_is_taken(descriptors=descriptors, log_bytes=_MOST_LOG_BYTES) as check:
        for addresses in (STRANGERS, STRANGERS[:1]):
            with attacking(addresses=addresses):
                assert webhook.ask(API_SERVER) == 200
                check()
    assert webhook.ask("stranger") == 403
