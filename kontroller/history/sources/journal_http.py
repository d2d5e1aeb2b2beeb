"""Journals that controllers and recorders serve over HTTP (`controller_core.process.journal_http`), and copies of them.

A segment only grows, except that its writer may cut off a torn or failed last write. So a copy is cut to its last whole
line, and continues only if its end still matches the server's. Otherwise the segment is fetched again.
"""

import asyncio
import os
from pathlib import Path
from typing import Final

import aiohttp
from pydantic import BaseModel, Field, ValidationError
from yarl import URL

from controller_core.security.token_file import UnusableToken
from kontroller.history.sources.journal_tokens import JournalTokens

CHUNK_BYTES: Final = 1 << 20
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30, connect=5, sock_read=10)
_MOST_INDEX_BYTES: Final = 8 << 20
_OVERLAP_BYTES: Final = 4096
_UNAUTHORIZED: Final = 401
_NOTHING_THERE: Final = 416
_SEGMENT: Final = r"^[0-9]+-[0-9]+\.jsonl$"
"""The names that may become local files, whatever a server sends."""


class JournalUnreadable(Exception):
    """The journal could not be read now. Earlier copies and lines stay valid. A retry may succeed."""


class _Segment(BaseModel):
    name: str = Field(pattern=_SEGMENT)
    bytes: int = Field(ge=0)


class _Index(BaseModel):
    segments: list[_Segment]


class ServedSegments:
    """The segments of the journal at an address such as `http://HOST:9404/journal`. All methods raise
    `JournalUnreadable`."""

    def __init__(self, url: URL, session: aiohttp.ClientSession, tokens: JournalTokens) -> None:
        self._url = url
        self._session = session
        self._tokens = tokens
        self.name = str(url.with_user(None))

    async def sizes(self) -> dict[str, int]:
        """Return the size of each segment in bytes, by its name, oldest first."""
        text = await self._get(self._url, {}, _MOST_INDEX_BYTES)
        try:
            index = _Index.model_validate_json(text)
        except ValidationError as error:
            raise JournalUnreadable(f"{self.name} is not a journal: give the address that ends in /journal") from error
        return {segment.name: segment.bytes for segment in index.segments}

    async def part(self, name: str, start: int, length: int) -> bytes:
        """Return up to `length` bytes of a segment."""
        return await self._get(self._url / name, {"Range": f"bytes={start}-{start + length - 1}"}, length)

    async def _get(self, url: URL, headers: dict[str, str], most_bytes: int) -> bytes:
        try:
            shown = await self._read_headers()
            async with self._session.get(url, headers={**headers, **shown}, timeout=_TIMEOUT) as answer:
                if answer.status == _NOTHING_THERE:
                    return b""
                if answer.status != (206 if headers else 200):
                    advice = "is a journal kept there?"
                    if answer.status == _UNAUTHORIZED:
                        advice = "it requires a token: give it with --journal-token-file"
                    raise JournalUnreadable(f"{self.name} answers {answer.status} {answer.reason}: {advice}")
                return await _read_at_most(answer.content, most_bytes)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise JournalUnreadable(f"{self.name} cannot be read: {str(error) or type(error).__name__}") from error

    async def _read_headers(self) -> dict[str, str]:
        """Return the headers with credentials. A user in the address takes precedence over tokens."""
        if self._url.user is not None:
            return {}
        try:
            return await asyncio.to_thread(self._tokens.headers, self.name)
        except UnusableToken as error:
            raise JournalUnreadable(f"{self.name} cannot be read: {error}") from error


async def _read_at_most(content: aiohttp.StreamReader, most_bytes: int) -> bytes:
    """Return the body, at most so many bytes of it, however much is sent."""
    data = bytearray()
    async for part in content.iter_chunked(1 << 16):
        data += part
        if len(data) >= most_bytes:
            break
    return bytes(data[:most_bytes])


def fetch(url: str, below: Path, tokens: JournalTokens | None = None) -> Path:
    """Update the copy of the journal at `url`, and return its folder below `below`. Each server has its own.

    Segments that the server has removed are kept. Raises `JournalUnreadable`, and `OSError` for the copy's own disk.
    """
    address = URL(url)
    folder = below / f"{address.host}-{address.explicit_port or 80}"
    folder.mkdir(parents=True, exist_ok=True)
    with asyncio.Runner() as runner:
        session = runner.run(_open_session())
        try:
            served = ServedSegments(address, session, tokens or JournalTokens())
            for name, size in runner.run(served.sizes()).items():
                _update(runner, served, folder / name, size)
        finally:
            runner.run(session.close())
    return folder


async def _open_session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession()


def _update(runner: asyncio.Runner, served: ServedSegments, copy: Path, size: int) -> None:
    with copy.open("ab+") as file:
        have = _cut_to_whole_lines(file.fileno())
        if have == size:
            return
        start = max(have - _OVERLAP_BYTES, 0)
        end = os.pread(file.fileno(), have - start, start)
        if have > size or (end and runner.run(served.part(copy.name, start, len(end))) != end):
            file.truncate(0)
            have = 0
        while have < size and (data := runner.run(served.part(copy.name, have, CHUNK_BYTES))):
            file.write(data)
            have += len(data)


def _cut_to_whole_lines(descriptor: int) -> int:
    end = os.fstat(descriptor).st_size
    while end:
        start = max(end - _OVERLAP_BYTES, 0)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            end = start + newline + 1
            break
        end = start
    os.ftruncate(descriptor, end)
    return end
