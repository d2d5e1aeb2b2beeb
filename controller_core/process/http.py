"""`/metrics` for Prometheus, `/healthz` and `/readyz` for probes, on a port of their own.

The event loop of the events serves them. So metrics are read between two events, never in the middle of one, and a loop
that hangs fails its probe."""

from collections.abc import Awaitable, Callable, Iterable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from controller_core.controller.role.readiness import Readiness
from controller_core.process.bounded_http import serve_http


async def serve_metrics(
    host: str, port: int, registry: CollectorRegistry, further: Iterable[web.RouteDef] = ()
) -> Callable[[], Awaitable[None]]:
    """Serve these and `further` routes; return the function that stops it. Raises `OSError` if the port is taken."""

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    application = web.Application()
    application.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz), *further])
    return await serve_http(application, host, port)


def make_readiness_route(look: Callable[[], Readiness]) -> web.RouteDef:
    """Return the route that answers 200 if a process is ready and 503 if it is not, with its state as JSON."""

    async def readyz(_: web.Request) -> web.Response:
        found = look()
        return web.json_response(found.make_json(), status=200 if found.is_ready else 503)

    return web.get("/readyz", readyz)
