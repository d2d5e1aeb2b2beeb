"""What a journal is to the watch: lines that come, and whether there are more at the moment."""

from typing import NamedTuple, Protocol


class JournalUnreadable(Exception):
    """Nothing could be read now; what was read before is not read again. May work later."""


class Chunk(NamedTuple):
    """Lines without their ends, in the order of the journal; `is_at_end`: no more have been written yet."""

    lines: list[bytes]
    is_at_end: bool


class Journal(Protocol):
    """A place that lines come from."""

    @property
    def name(self) -> str:
        """For people and metrics; without credentials."""
        ...

    async def read(self) -> Chunk:
        """What comes next, some MiB at most, from the newest whole snapshot on or earlier. Raises `JournalUnreadable`."""
        ...

    async def close(self) -> None: ...
