"""Serves the report of a folder, as it is at each request, so that a job may write it anew at any time.

`/` is the page, `/tables/NAME` are its tables, and `/clusters/ID` leads to the cluster's row on the page. Nothing else in
the folder is served. `/metrics` has the service levels. The settings may require a token or a client's certificate.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import quote

import structlog
from aiohttp import web
from prometheus_client import CollectorRegistry

from controller_core.process.http import HttpAccess, read_http_access, serve_metrics
from controller_core.process.signals import run_until_signalled
from kontroller.history.serving.levels import PAGE, LevelMetrics
from kontroller.history.serving.settings import ServeSettings

log = structlog.get_logger()

_CHUNK_BYTES: Final = 1 << 18
_TABLE: Final = re.compile(r"[a-z_]{1,64}\.(?:json|parquet)")
_TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".json": "application/x-ndjson",
    ".parquet": "application/vnd.apache.parquet",
}
_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_NO_REPORT: Final = "there is no report yet: the next `kontroller history report` writes it\n"


async def run_server(settings: ServeSettings) -> None:
    """Serve until SIGTERM or SIGINT. They also end the start. Raises `InvalidSettings`, and `OSError` for a port."""
    await run_until_signalled(_serve_until_cancelled(settings))


async def _serve_until_cancelled(settings: ServeSettings) -> None:
    stop = await serve_report(settings.report, settings.metrics_host, settings.metrics_port, read_http_access(settings))
    log.info("serving the report", report=str(settings.report), port=settings.metrics_port)
    try:
        await asyncio.Event().wait()
    finally:
        await stop()


async def serve_report(folder: Path, host: str, port: int, access: HttpAccess) -> Callable[[], Awaitable[None]]:
    """Serve a report; return the function that stops it. Raises `OSError` if the port is taken."""
    registry = CollectorRegistry()
    registry.register(LevelMetrics(folder))
    return await serve_metrics(host, port, registry, make_routes(folder, access), access)


def make_routes(folder: Path, access: HttpAccess) -> list[web.RouteDef]:
    """Return the routes of a report. The folder need not exist yet."""

    async def show_page(request: web.Request) -> web.StreamResponse:
        await access.door.admit(request)
        return await _send_file(request, folder / PAGE, _NO_REPORT)

    async def show_table(request: web.Request) -> web.StreamResponse:
        await access.door.admit(request)
        name = request.match_info["name"]
        if not _TABLE.fullmatch(name):
            raise web.HTTPNotFound(text=f"no table {quote(name)} here\n")
        return await _send_file(request, folder / "tables" / name, f"no table {name} here\n")

    async def show_cluster(request: web.Request) -> web.StreamResponse:
        await access.door.admit(request)
        raise web.HTTPFound(f"/#cluster={quote(request.match_info['cluster'], safe='')}")

    return [
        web.get("/", show_page),
        web.get("/index.html", show_page),
        web.get("/tables/{name}", show_table),
        web.get("/clusters/{cluster}", show_cluster),
    ]


async def _send_file(request: web.Request, path: Path, otherwise: str) -> web.StreamResponse:
    try:
        file = await asyncio.to_thread(path.open, "rb")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise web.HTTPNotFound(text=otherwise) from error
    try:
        status = os.fstat(file.fileno())
        etag = f'"{status.st_mtime_ns:x}-{status.st_size:x}"'
        headers = {**_HEADERS, "ETag": etag}
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers=headers)
        headers |= {"Content-Type": _TYPES[path.suffix], "Content-Length": str(status.st_size)}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        if request.method != "HEAD":
            await _send_bytes(response, file, status.st_size)
        return response
    finally:
        await asyncio.to_thread(file.close)


async def _send_bytes(response: web.StreamResponse, file: BinaryIO, left: int) -> None:
    """Send the file as it was when it was opened: a report is replaced, not changed."""
    while left > 0:
        chunk = await asyncio.to_thread(file.read, min(_CHUNK_BYTES, left))
        if not chunk:
            raise ConnectionResetError("a file of the report became shorter while it was read")
        await response.write(chunk)
        left -= len(chunk)
