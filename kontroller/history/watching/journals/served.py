"""A journal that a controller or recorder serves on its metrics port. Requests fetch only the new part."""

import aiohttp
from yarl import URL

from kontroller.history.sources.caps import Caps
from kontroller.history.sources.journal_http import ServedSegments
from kontroller.history.sources.journal_tls import JournalTls
from kontroller.history.sources.journal_tokens import JournalTokens
from kontroller.history.watching.journals.journal import Chunk
from kontroller.history.watching.journals.segments import SegmentJournal


class ServedJournal:
    """The journal at `http://HOST:9404/journal`."""

    def __init__(
        self,
        url: str,
        session: aiohttp.ClientSession,
        tokens: JournalTokens | None = None,
        tls: JournalTls | None = None,
        caps: Caps | None = None,
    ) -> None:
        served = ServedSegments(URL(url), session, tokens or JournalTokens(), tls, caps)
        self.name = served.name
        self._journal = SegmentJournal(served, caps)

    async def read(self) -> Chunk:
        return await self._journal.read()

    async def close(self) -> None:
        """Do nothing, because the caller owns the session."""
