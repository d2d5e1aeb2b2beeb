"""A controller whose port of metrics, journal and probes is HTTPS, with a token and an authority of readers."""

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request

from devcluster.clusters.certificates import Authority, CertificateFiles
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.run_folder import RunFolder
from devcluster.running.scraping import find_value, open_locally
from tests.real.ports.http_clients import BEARER, TOKEN, HttpPort
from tests.real.ports.strangers import SOON_S


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpsSite:
    """The controller's port, and the files of its readers."""

    port: HttpPort
    read_metric: Callable[[str], float | None]
    authority: Path
    """The authority of the port's certificate."""
    token: Path
    reader: CertificateFiles
    """A certificate that admits."""
    stranger: CertificateFiles
    """A certificate of another authority."""

    def count_refusals(self, reason: str) -> float | None:
        """Return the number of refusals of HTTP ports for a reason."""
        return self.read_metric(f'kontroller_refused_total{{port="http",reason="{reason}"}}')

    def make_context(self, shown: CertificateFiles) -> ssl.SSLContext:
        """Return the context of a client that shows a certificate."""
        context = ssl.create_default_context(cafile=self.authority)
        context.load_cert_chain(shown.certificate, shown.key)
        return context


class _SecuredController(ControllerProcess):
    """A controller whose metrics need the token."""

    def __init__(self, folder: RunFolder, zookeeper_connect: str, authority: Path, **given: Any) -> None:
        self.tls = ssl.create_default_context(cafile=authority)
        super().__init__(folder, zookeeper_connect, **given)

    def metric(self, name: str) -> float | None:
        asked = Request(f"https://127.0.0.1:{self.metrics_port}/metrics", headers=dict(BEARER))
        with open_locally(asked, timeout_s=SOON_S, tls=self.tls) as answer:
            return find_value(answer.read().decode(), name)


@contextmanager
def serve_https(servers_folder: RunFolder, zookeeper_connect: str, name: str) -> Iterator[HttpsSite]:
    """Run a controller with HTTPS until the end of the block."""
    files = servers_folder.data(f"{name}-files")
    servers, readers, others = (_make_authority(files / each) for each in ("servers", "readers", "others"))
    own = servers.issue("controller", "IP:127.0.0.1")
    token = files / "token"
    token.write_text(TOKEN)
    settings = {
        "metrics_certificate": str(own.certificate),
        "metrics_key": str(own.key),
        "metrics_client_ca": str(readers.certificate),
        "metrics_token_file": str(token),
        "journal_directory": str(servers_folder.data(f"{name}-journal")),
    }
    with _SecuredController(
        servers_folder, zookeeper_connect, servers.certificate, name=name, settings=settings
    ) as controller:
        yield HttpsSite(
            port=HttpPort(number=controller.metrics_port, process=controller.process, tls=controller.tls),
            read_metric=controller.metric,
            authority=servers.certificate,
            token=token,
            reader=readers.issue("reader"),
            stranger=others.issue("stranger"),
        )


def _make_authority(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)
