"""A journal that a controller or recorder serves on its metrics port. Requests fetch only the new part."""

import asyncio
from typing import Final

import aiohttp
from pydantic import ValidationError
from yarl import URL

from controller_core.security.token_file import UnusableToken
from kontroller.history.sources.journal_http import Index, what_to_do
from kontroller.history.sources.journal_tokens import JournalTokens
from kontroller.history.watching.journals.journal import Chunk, JournalUnreadable
from kontroller.history.watching.journals.segments import SegmentJournal

_TIMEOUT: Final = aiohttp.ClientTimeout(total=30, connect=5, sock_read=10)
_MOST_INDEX_BYTES: Final = 8 << 20
_NOTHING_THERE: Final = 416


class ServedJournal:
    """The journal at `http://HOST:9404/journal`."""

    def __init__(self, url: str, session: aiohttp.ClientSession, tokens: JournalTokens | None = None) -> None:
        self._served = _Served(URL(url), session, tokens or JournalTokens())
        self._journal = SegmentJournal(self._served)

    @property
    def name(self) -> str:
        return self._served.name

    async def read(self) -> Chunk:
        return await self._journal.read()

    async def close(self) -> None:
        """Do nothing, because the caller owns the session."""


class _Served:
    """`Segments` over HTTP (`controller_core.process.journal_http`)."""

    def __init__(self, url: URL, session: aiohttp.ClientSession, tokens: JournalTokens) -> None:
        self._url = url
        self._session = session
        self._tokens = tokens
        self.name = str(url.with_user(None))

    async def sizes(self) -> dict[str, int]:
        text = await self._get(self._url, {}, _MOST_INDEX_BYTES)
        try:
            index = Index.model_validate_json(text)
        except ValidationError as error:
            raise JournalUnreadable(f"{self.name} is not a journal: give the address that ends in /journal") from error
        return {segment.name: segment.bytes for segment in index.segments}

    async def part(self, name: str, start: int, length: int) -> bytes:
        return await self._get(self._url / name, {"Range": f"bytes={start}-{start + length - 1}"}, length)

    async def _get(self, url: URL, headers: dict[str, str], most_bytes: int) -> bytes:
        try:
            shown = await self._read_headers()
            async with self._session.get(url, headers={**headers, **shown}, timeout=_TIMEOUT) as answer:
                if answer.status == _NOTHING_THERE:
                    return b""
                if answer.status != (206 if headers else 200):
                    raise JournalUnreadable(f"{self.name} answers {answer.status}: {what_to_do(answer.status)}")
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
