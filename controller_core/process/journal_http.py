"""The journal's segments over HTTP, beside the metrics, so that a history elsewhere needs no shared volume.

`GET /journal` lists them, oldest first: `{"segments": [{"name": "...", "bytes": 123}]}`. `GET /journal/NAME` returns
one; with `Range` a part of it. Nothing else in the directory is served. Files are read in another thread, so no event
waits for a disk. If a token is set, only readers that present it are served (others get 401), and nobody while the
token cannot be read (503)."""

import asyncio
import os
from pathlib import Path
from typing import Final

import structlog
from aiohttp import web

from controller_core.journal.segments import segments
from controller_core.process.settings import InvalidSettings, ProcessSettings
from controller_core.security.token_file import TokenFile, UnusableToken

log = structlog.get_logger()

CHUNK_BYTES = 1 << 18
_WHO_MAY: Final = "this journal requires its token, as Authorization: Bearer TOKEN (--journal-token-file)\n"
_NOBODY_NOW: Final = "the server cannot read the token of this journal, so nobody is admitted: see its log\n"


def read_journal_token(settings: ProcessSettings) -> TokenFile | None:
    """Return the token of the settings; None: everybody who can reach the port may read. Raises `InvalidSettings`."""
    if settings.journal_token_file is None:
        return None
    token = TokenFile(path=settings.journal_token_file)
    try:
        token.require_usable()
    except UnusableToken as error:
        raise InvalidSettings(f"--journal-token-file: {error}") from error
    return token


def make_journal_routes(directory: Path, token: TokenFile | None = None) -> list[web.RouteDef]:
    """Return the routes of the journal in a directory, which need not exist yet. `token`: required from readers."""
    door = _Door(token)

    async def index(request: web.Request) -> web.Response:
        await door.admit(request)
        found = await asyncio.to_thread(_list_sizes, directory)
        return web.json_response({"segments": [{"name": name, "bytes": size} for name, size in found.items()]})

    async def segment(request: web.Request) -> web.StreamResponse:
        await door.admit(request)
        name = request.match_info["name"]
        # Only names of existing segments are served, so no name can lead out of the directory.
        size = (await asyncio.to_thread(_list_sizes, directory)).get(name)
        if size is None:
            raise web.HTTPNotFound(text=f"no segment {name} here\n")
        start, stop = _read_range(request, size)
        headers = {"Content-Type": "application/x-ndjson", "Content-Length": str(stop - start)}
        if "Range" in request.headers:
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
        response = web.StreamResponse(status=206 if "Range" in request.headers else 200, headers=headers)
        await response.prepare(request)
        while start < stop:
            chunk = await asyncio.to_thread(_read, directory / name, start, min(CHUNK_BYTES, stop - start))
            if not chunk:
                raise ConnectionResetError(f"{name} became shorter while it was read")
            await response.write(chunk)
            start += len(chunk)
        return response

    return [web.get("/journal", index), web.get("/journal/{name}", segment)]


class _Door:
    """Admits readers. Logs only once that nobody is admitted, because any client could otherwise fill the log."""

    def __init__(self, token: TokenFile | None) -> None:
        self._token = token
        self._is_shut = False

    async def admit(self, request: web.Request) -> None:
        """Raise the HTTP error for a reader that may not read."""
        if self._token is None:
            return
        try:
            is_admitted = await asyncio.to_thread(self._token.admits, request.headers.get("Authorization", ""))
        except UnusableToken as error:
            if not self._is_shut:
                log.warning("nobody may read the journal over HTTP: its token cannot be read", reason=str(error))
            self._is_shut = True
            raise web.HTTPServiceUnavailable(text=_NOBODY_NOW) from error
        self._is_shut = False
        if not is_admitted:
            raise web.HTTPUnauthorized(text=_WHO_MAY, headers={"WWW-Authenticate": "Bearer"})


def _list_sizes(directory: Path) -> dict[str, int]:
    try:
        return {path.name: path.stat().st_size for path in segments(directory)}
    except FileNotFoundError:
        return {}


def _read_range(request: web.Request, size: int) -> tuple[int, int]:
    try:
        asked = request.http_range
    except ValueError as error:
        raise web.HTTPRequestRangeNotSatisfiable(headers={"Content-Range": f"bytes */{size}"}) from error
    start, stop, _ = asked.indices(size)
    if "Range" in request.headers and start >= stop:
        raise web.HTTPRequestRangeNotSatisfiable(headers={"Content-Range": f"bytes */{size}"})
    return start, stop


def _read(path: Path, offset: int, length: int) -> bytes:
    with path.open("rb") as file:
        return os.pread(file.fileno(), length, offset)
