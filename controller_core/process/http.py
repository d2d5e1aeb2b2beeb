"""`/metrics` for Prometheus, `/healthz` and `/readyz` for probes, on a port of their own.

The event loop of the events serves them. So metrics are read between two events, never in the middle of one, and a loop
that hangs fails its probe. The settings may require a token or a client's certificate for metrics, never for probes."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from controller_core.controller.role.readiness import Readiness
from controller_core.process.bounded_http import MOST_HEAD_BYTES, serve_http
from controller_core.process.http_access.certificate import CertificateFiles, ServedCertificate, UnusableCertificate
from controller_core.process.http_access.door import OPEN, Door
from controller_core.process.http_access.settings import HttpSettings
from controller_core.process.settings import InvalidSettings
from controller_core.security.token_file import TokenFile, UnusableToken
from controller_core.wire.listener.refusals import Port, Refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAccess:
    """The certificate that an HTTP port shows, and who may read there."""

    certificate: ServedCertificate | None = None
    """None: HTTP."""
    door: Door = OPEN


NO_LIMITS: Final = HttpAccess()


def read_http_access(settings: HttpSettings) -> HttpAccess:
    """Read the files that the settings name. Raises `InvalidSettings`."""
    certificate = None
    if settings.metrics_certificate is not None and settings.metrics_key is not None:
        files = CertificateFiles(
            chain=settings.metrics_certificate, key=settings.metrics_key, client_ca=settings.metrics_client_ca
        )
        certificate = read_certificate(files, "--metrics-certificate")
    token = read_token(settings.metrics_token_file, "--metrics-token-file")
    takes_certificates = settings.metrics_client_ca is not None
    door = Door(token, option="--metrics-token-file", takes_certificates=takes_certificates)
    return HttpAccess(certificate=certificate, door=door)


def read_certificate(files: CertificateFiles, option: str) -> ServedCertificate:
    """Return the certificate that an option names. Raises `InvalidSettings`."""
    try:
        return ServedCertificate(files)
    except UnusableCertificate as error:
        raise InvalidSettings(f"{option}: {error}") from error


def read_token(file: Path | None, option: str) -> TokenFile | None:
    """Return the token that an option names. Raises `InvalidSettings`."""
    if file is None:
        return None
    token = TokenFile(path=file)
    try:
        token.require_usable()
    except UnusableToken as error:
        raise InvalidSettings(f"{option}: {error}") from error
    return token


async def serve_metrics(
    host: str,
    port: int,
    registry: CollectorRegistry,
    further: Iterable[web.RouteDef] = (),
    access: HttpAccess = NO_LIMITS,
    refusals: Refusals | None = None,
) -> Callable[[], Awaitable[None]]:
    """Serve these and `further` routes; return the function that stops it. Raises `OSError` if the port is taken.

    `refusals`: those of the process, in `registry`; by default new ones, for a process that has no other port."""

    async def metrics(request: web.Request) -> web.Response:
        await access.door.admit(request)
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    application = web.Application()
    application.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz), *further])
    tls = access.certificate.find_context if access.certificate is not None else None
    refusals = refusals or Refusals(registry, (Port.HTTP,))
    return await serve_http(application, host, port, tls=tls, most_bytes=MOST_HEAD_BYTES, refusals=refusals)


def make_readiness_route(look: Callable[[], Readiness]) -> web.RouteDef:
    """Return the route that answers 200 if a process is ready and 503 if it is not, with its state as JSON."""

    async def readyz(_: web.Request) -> web.Response:
        found = look()
        return web.json_response(found.make_json(), status=200 if found.is_ready else 503)

    return web.get("/readyz", readyz)
