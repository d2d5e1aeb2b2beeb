"""The operator's answers to probes for liveness and readiness.

`/healthz` fails if only a new process helps: the event loop is blocked, or work that should never end has ended or is
stuck. `/readyz` fails with the reason while objects cannot be listed or watched: the API server does not answer, rights
are missing, or the CustomResourceDefinitions are missing.
"""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web

from controller_core.process.bounded_http import MOST_HEAD_BYTES, serve_http
from controller_core.wire.listener.refusals import Refusals

Look = Callable[[], str | None]
"""Returns the trouble; None if there is none."""
_READY_PATH: Final = "/readyz"


async def serve_probes(
    endpoint: str, *, health: Look, readiness: Look, refusals: Refusals | None = None
) -> Callable[[], Awaitable[None]]:
    """Serve health at `endpoint` (http://HOST:PORT/PATH) and readiness beside it. Return a function that stops it.

    Raises `OSError` if the port is taken."""
    where = urlsplit(endpoint)
    application = web.Application()
    application.add_routes([web.get(where.path or "/", _answer(health)), web.get(_READY_PATH, _answer(readiness))])
    port = where.port or 80
    return await serve_http(application, where.hostname, port, most_bytes=MOST_HEAD_BYTES, refusals=refusals)


def _answer(look: Look) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        wrong = look()
        return web.Response(text=f"{wrong or 'ok'}\n", status=503 if wrong else 200)

    return answer
