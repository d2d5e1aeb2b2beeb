"""The journal's segments over HTTP, beside the metrics, so that a history elsewhere needs no shared volume.

`GET /journal` lists them, oldest first: `{"segments": [{"name": "...", "bytes": 123}]}`. `GET /journal/NAME` returns
one; with `Range` a part of it. Nothing else in the directory is served. Files are read in another thread, so no event
waits for a disk. If the journal has a token, only readers that present it are served (others get 401), and nobody while
the token cannot be read (503). Without one the journal is served to those who may read the metrics."""

import asyncio
import os
from pathlib import Path
from typing import Final

from aiohttp import web

from controller_core.journal.segments import segments
from controller_core.process.http import read_token
from controller_core.process.http_access.door import OPEN, Door
from controller_core.process.settings import ProcessSettings
from controller_core.security.token_file import TokenFile

CHUNK_BYTES = 1 << 18
_OPTION: Final = "--journal-token-file"


def read_journal_door(settings: ProcessSettings, otherwise: Door) -> Door:
    """Return the door of the journal: its own token's, or another one without a token. Raises `InvalidSettings`."""
    token = read_token(settings.journal_token_file, _OPTION)
    return otherwise if token is None else Door(token, option=_OPTION)


def make_journal_routes(directory: Path, token: TokenFile | None = None, *, door: Door = OPEN) -> list[web.RouteDef]:
    """Return the routes of the journal in a directory, which need not exist yet.

    Readers must present the token if there is one; otherwise the door decides."""
    door = door if token is None else Door(token, option=_OPTION)

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
