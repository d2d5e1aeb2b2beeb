"""HTTPS, certificates and tokens at the port of metrics, journal and probes."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from aiohttp import ClientError, ClientSession
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from controller_core.controller.role.readiness import Readiness
from controller_core.process.http import make_readiness_route, read_http_access, serve_metrics
from controller_core.process.http_access import certificate
from controller_core.process.http_access.settings import HttpSettings
from controller_core.process.journal_http import make_journal_routes, read_journal_door
from controller_core.process.settings import InvalidSettings, ProcessSettings, load
from devcluster.clusters.certificates import Authority, CertificateFiles
from devcluster.running.ports import release_port, reserve_port
from tests.unit.process.test_bounded_http import count_refusals

TOKEN: Final = "a-token-of-the-tests"
READY: Final = Readiness(is_ready=True, role="controller")
GUARDED: Final = ("/metrics", "/journal")
PROBES: Final = ("/healthz", "/readyz")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("servers"))


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("clients"))


@pytest.fixture
def shown(servers: Authority) -> CertificateFiles:
    return servers.issue("server", "IP:127.0.0.1")


@pytest.fixture
def token(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(TOKEN)
    return tmp_path / "token"


def load_http_settings(**given: object) -> HttpSettings:
    return load(HttpSettings, given)


def make_tls_settings(shown: CertificateFiles, **further: object) -> HttpSettings:
    return load_http_settings(metrics_certificate=shown.certificate, metrics_key=shown.key, **further)


@asynccontextmanager
async def serve(settings: HttpSettings, journal: Path, registry: CollectorRegistry | None = None) -> AsyncIterator[str]:
    """Serve all pages; yield their address."""
    access = read_http_access(settings)
    port = reserve_port()
    door = read_journal_door(settings, access.door) if isinstance(settings, ProcessSettings) else access.door
    routes = [make_readiness_route(lambda: READY), *make_journal_routes(journal, door=door)]
    stop = await serve_metrics("127.0.0.1", port, registry or CollectorRegistry(), routes, access)
    try:
        yield f"{'http' if access.certificate is None else 'https'}://127.0.0.1:{port}"
    finally:
        await stop()
        release_port(port)


def trust(authority: Authority, own: CertificateFiles | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.certificate)
    if own is not None:
        context.load_cert_chain(own.certificate, own.key)
    return context


async def statuses(address: str, context: ssl.SSLContext | None, headers: Mapping[str, str] | None = None) -> list[int]:
    """Return the statuses of the guarded pages, then those of the probes."""
    options: dict[str, Any] = {} if context is None else {"ssl": context}
    async with ClientSession(headers=headers) as session:
        found = []
        for page in (*GUARDED, *PROBES):
            async with session.get(f"{address}{page}", **options) as answer:
                found.append(answer.status)
        return found


async def test_metrics_and_journal_need_the_token_and_probes_do_not(token: Path, tmp_path: Path) -> None:
    async with serve(load_http_settings(metrics_token_file=token), tmp_path) as address:
        assert await statuses(address, None) == [401, 401, 200, 200]
        assert await statuses(address, None, {"Authorization": f"Bearer {TOKEN}x"}) == [401, 401, 200, 200]
        assert await statuses(address, None, {"Authorization": f"Bearer {TOKEN}"}) == [200] * 4


async def test_a_journal_with_a_token_of_its_own_needs_that_one(token: Path, tmp_path: Path) -> None:
    own = tmp_path / "journal-token"
    own.write_text("a-token-of-the-journal")
    settings = load(ProcessSettings, {"metrics_token_file": token, "journal_token_file": own})
    async with serve(settings, tmp_path) as address:
        assert await statuses(address, None) == [401, 401, 200, 200]
        assert await statuses(address, None, {"Authorization": f"Bearer {TOKEN}"}) == [200, 401, 200, 200]
        assert await statuses(address, None, {"Authorization": f"Bearer {own.read_text()}"}) == [401, 200, 200, 200]


async def test_nothing_can_be_changed_by_http(tmp_path: Path) -> None:
    async with serve(load_http_settings(), tmp_path) as address, ClientSession() as session:
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            for page in (*GUARDED, *PROBES):
                async with session.request(method, f"{address}{page}") as answer:
                    assert answer.status == 405


async def test_a_certificate_of_the_clients_authority_admits(
    servers: Authority, clients: Authority, shown: CertificateFiles, tmp_path: Path
) -> None:
    async with serve(make_tls_settings(shown, metrics_client_ca=clients.certificate), tmp_path) as address:
        assert await statuses(address, trust(servers)) == [401, 401, 200, 200]
        assert await statuses(address, trust(servers, clients.issue("prometheus"))) == [200] * 4
        with pytest.raises(ClientError):
            await statuses(address, trust(servers, servers.issue("another")))


async def test_refused_readers_are_counted_and_logged_once_a_minute(token: Path, tmp_path: Path) -> None:
    registry = CollectorRegistry()
    with capture_logs() as logged:
        async with serve(load_http_settings(metrics_token_file=token), tmp_path, registry) as address:
            for _ in range(2):
                assert await statuses(address, None) == [401, 401, 200, 200]
            assert count_refusals(registry) == {"login": 4}
            os.remove(token)
            assert await statuses(address, None) == [503, 503, 200, 200]
    assert count_refusals(registry) == {"login": 6}
    (refused,) = [line for line in logged if line["event"] == "HTTP reader refused"]
    assert refused["address"] == "127.0.0.1"
    assert refused["why"].startswith("this page requires its token")
    assert TOKEN not in str(logged)


async def test_handshakes_of_strangers_are_counted_unless_they_only_leave(
    servers: Authority, clients: Authority, shown: CertificateFiles, tmp_path: Path
) -> None:
    registry = CollectorRegistry()
    settings = make_tls_settings(shown, metrics_client_ca=clients.certificate)
    async with serve(settings, tmp_path, registry) as address:
        for sent in (b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", int(address.rpartition(":")[2]))
            writer.write(sent)
            writer.write_eof()
            await reader.read()
            writer.close()
        assert count_refusals(registry) == {"tls": 1}
        with pytest.raises(ClientError):
            await statuses(address, trust(servers, servers.issue("another")))
    assert count_refusals(registry)["tls"] > 1  # the client may try again


async def test_a_connection_with_tls_causes_no_error_in_the_event_loop(
    servers: Authority, shown: CertificateFiles, tmp_path: Path
) -> None:
    errors = list[str]()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context["message"]))
    async with serve(make_tls_settings(shown), tmp_path) as address:
        assert await statuses(address, trust(servers)) == [200] * 4
    assert errors == []


async def test_with_an_authority_and_a_token_either_admits(
    servers: Authority, clients: Authority, shown: CertificateFiles, token: Path, tmp_path: Path
) -> None:
    settings = make_tls_settings(shown, metrics_client_ca=clients.certificate, metrics_token_file=token)
    async with serve(settings, tmp_path) as address:
        assert await statuses(address, trust(servers)) == [401, 401, 200, 200]
        assert await statuses(address, trust(servers), {"Authorization": f"Bearer {TOKEN}"}) == [200] * 4
        assert await statuses(address, trust(servers, clients.issue("prometheus"))) == [200] * 4


async def test_a_renewed_certificate_is_shown_and_an_unusable_one_is_not(
    servers: Authority, shown: CertificateFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "_LOOK_S", 0)

    async def read_serial(port: int) -> object:
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust(servers))
        found = writer.get_extra_info("peercert")["serialNumber"]
        writer.close()
        return found

    async with serve(make_tls_settings(shown), tmp_path) as address:
        port = int(address.rpartition(":")[2])
        first = await read_serial(port)
        servers.issue("server", "IP:127.0.0.1")
        second = await read_serial(port)
        shown.certificate.write_text("no certificate")
        with capture_logs() as logged:
            assert await read_serial(port) == second != first
        assert [line["event"] for line in logged] == ["the HTTPS port keeps its former certificate"]
        os.remove(shown.key)
        assert await read_serial(port) == second


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["metrics_certificate"], "--metrics-certificate and --metrics-key go together"),
        (["metrics_key"], "--metrics-certificate and --metrics-key go together"),
        (["metrics_client_ca"], "--metrics-client-ca needs --metrics-certificate"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(given: list[str], said: str) -> None:
    with pytest.raises(InvalidSettings, match=said):
        load_http_settings(**dict.fromkeys(given, "/file"))


def test_files_that_cannot_be_used_are_named(shown: CertificateFiles, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(InvalidSettings, match=r"--metrics-certificate: .*missing cannot be used: "):
        read_http_access(load_http_settings(metrics_certificate=shown.certificate, metrics_key=missing))
    with pytest.raises(InvalidSettings, match=r"--metrics-certificate: .*missing cannot be used: "):
        read_http_access(make_tls_settings(shown, metrics_client_ca=missing))
    with pytest.raises(InvalidSettings, match=r"--metrics-token-file: .*missing cannot be read"):
        read_http_access(load_http_settings(metrics_token_file=missing))
