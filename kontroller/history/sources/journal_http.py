"""Journals that controllers and recorders serve over HTTP (`controller_core.process.journal_http`).

The server is not trusted: an answer is cut at its cap, redirects are not followed, and compressed answers are refused,
because they were not asked for and expand without a limit.
"""

import asyncio
import ssl
from typing import Final

import aiohttp
from pydantic import BaseModel, Field, ValidationError
from yarl import URL

from controller_core.security.token_file import UnusableToken
from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_tls import JournalTls, UnusableCertificates
from kontroller.history.sources.journal_tokens import JournalTokens

CHUNK_BYTES: Final = 1 << 20
_TIMEOUT: Final = aiohttp.ClientTimeout(total=30, connect=5, sock_read=10)
_UNAUTHORIZED: Final = 401
_NOTHING_THERE: Final = 416
_REDIRECTS: Final = range(300, 400)
_PLAIN: Final = ("", "identity")
_SEGMENT: Final = r"^[0-9]+-[0-9]+\.jsonl$"
"""The names that may become local files, whatever a server sends."""


class JournalUnreadable(Exception):
    """The journal could not be read now. Earlier copies and lines stay valid. A retry may succeed."""


class _Segment(BaseModel):
    name: str = Field(pattern=_SEGMENT)
    bytes: int = Field(ge=0, le=1 << 62)


class _Index(BaseModel):
    segments: list[_Segment]


class ServedSegments:
    """The segments of the journal at an address such as `http://HOST:9404/journal`. All methods raise
    `JournalUnreadable`."""

    def __init__(
        self,
        url: URL,
        session: aiohttp.ClientSession,
        tokens: JournalTokens,
        tls: JournalTls | None = None,
        caps: Caps | None = None,
    ) -> None:
        self._url = url
        self._session = session
        self._tokens = tokens
        self._tls = tls or JournalTls()
        self._caps = caps or Caps()
        self.name = str(url.with_user(None))

    async def list_segments(self) -> dict[str, int]:
        """Return the claimed size of each segment in bytes, by its name, oldest first."""
        most = self._caps.index_bytes
        text = await self._get(self._url, {}, most + 1)
        if len(text) > most:
            raise JournalUnreadable(f"{self.name} lists its segments in more than {most:,} bytes: is it a journal?")
        try:
            index = _Index.model_validate_json(text)
        except ValidationError as error:
            raise JournalUnreadable(f"{self.name} is not a journal: give the address that ends in /journal") from error
        return {segment.name: segment.bytes for segment in index.segments}

    async def sizes(self) -> dict[str, int]:
        """Return what `list_segments` does. A segment above the cap makes the journal unreadable."""
        sizes = await self.list_segments()
        for name, size in sizes.items():
            if size > self._caps.file_bytes:
                raise JournalUnreadable(self.word_too_large(name, size))
        return sizes

    def word_too_large(self, name: str, size: int) -> str:
        return (
            f"{self.name}/{name} is left out: it has {size:,} bytes, more than --max-file-bytes "
            f"{self._caps.file_bytes}. Raise that if its controller writes such segments"
        )

    async def part(self, name: str, start: int, length: int) -> bytes:
        """Return up to `length` bytes of a segment."""
        return await self._get(self._url / name, {"Range": f"bytes={start}-{start + length - 1}"}, length)

    async def _get(self, url: URL, headers: dict[str, str], most_bytes: int) -> bytes:
        try:
            shown = await self._read_headers()
            request = self._session.get(
                url,
                headers={"Accept-Encoding": "identity", **headers, **shown},
                timeout=_TIMEOUT,
                allow_redirects=False,
                auto_decompress=False,
                ssl=await self._read_tls(),
            )
            async with request as answer:
                if answer.status == _NOTHING_THERE:
                    return b""
                self._check(answer, expected=206 if headers else 200)
                return await _read_at_most(answer.content, most_bytes)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise JournalUnreadable(f"{self.name} cannot be read: {str(error) or type(error).__name__}") from error

    def _check(self, answer: aiohttp.ClientResponse, *, expected: int) -> None:
        if answer.status in _REDIRECTS:
            raise JournalUnreadable(
                f"{self.name} answers {answer.status} and names another address, which is not followed: give the "
                "address of the journal itself"
            )
        if answer.status != expected:
            advice = "is a journal kept there?"
            if answer.status == _UNAUTHORIZED:
                advice = "it requires a token: give it with --journal-token-file"
            raise JournalUnreadable(f"{self.name} answers {answer.status} {answer.reason}: {advice}")
        if answer.headers.get("Content-Encoding", "").lower() not in _PLAIN:
            raise JournalUnreadable(f"{self.name} compresses its answers: turn that off in the server or its proxy")

    async def _read_headers(self) -> dict[str, str]:
        """Return the headers with credentials. A user in the address takes precedence over tokens."""
        if self._url.user is not None:
            return {}
        try:
            return await asyncio.to_thread(self._tokens.headers, self.name)
        except UnusableToken as error:
            raise JournalUnreadable(f"{self.name} cannot be read: {error}") from error

    async def _read_tls(self) -> ssl.SSLContext | bool:
        if self._url.scheme != "https":
            return True
        try:
            return await asyncio.to_thread(self._tls.context)
        except UnusableCertificates as error:
            raise JournalUnreadable(f"{self.name} cannot be read: {error}") from error


async def _read_at_most(content: aiohttp.StreamReader, most_bytes: int) -> bytes:
    """Return the body, at most so many bytes of it, however much is sent."""
    data = bytearray()
    async for part in content.iter_chunked(1 << 16):
        data += part
        if len(data) >= most_bytes:
            break
    return bytes(data[:most_bytes])
