"""The interface of a journal for the watch: new lines, and if there are more at the moment."""

from typing import NamedTuple, Protocol


class Chunk(NamedTuple):
    """Lines without their ends, in the order of the journal. `is_at_end`: no more have been written yet."""

    lines: list[bytes]
    is_at_end: bool


class Journal(Protocol):
    """A source of lines."""

    @property
    def name(self) -> str:
        """The name for people and metrics, without credentials."""
        ...

    async def read(self) -> Chunk:
        """Return the next lines, some MiB at most, from the newest whole snapshot or earlier on. Raises
        `JournalUnreadable`."""
        ...

    async def close(self) -> None: ...
