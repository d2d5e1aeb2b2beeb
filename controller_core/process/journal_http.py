"""The journal's segments over HTTP, beside the metrics, so that a history can be kept elsewhere without a shared volume.

`GET /journal` lists them, oldest first: `{"segments": [{"name": "...", "bytes": 123}]}`. `GET /journal/NAME` is one; with
`Range` a part of it. Nothing else in the directory is served. Files are read in another thread: no event waits for a disk.
"""

import asyncio
import os
from pathlib import Path

from aiohttp import web

from controller_core.journal.segments import segments

CHUNK_BYTES = 1 << 18


def journal_routes(directory: Path) -> list[web.RouteDef]:
    """What serves the journal in a directory, which need not exist yet."""

    async def index(_: web.Request) -> web.Response:
        found = await asyncio.to_thread(_sizes, directory)
        return web.json_response({"segments": [{"name": name, "bytes": size} for name, size in found.items()]})

    async def segment(request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        size = (await asyncio.to_thread(_sizes, directory)).get(name)
        if size is None:
            raise web.HTTPNotFound(text=f"no segment {name} here\n")
        start, stop = _asked_for(request, size)
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


def _sizes(directory: Path) -> dict[str, int]:
    try:
        return {path.name: path.stat().st_size for path in segments(directory)}
    except FileNotFoundError:
        return {}


def _asked_for(request: web.Request, size: int) -> tuple[int, int]:
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
