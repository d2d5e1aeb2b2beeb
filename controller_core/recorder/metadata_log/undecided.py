"""Fetched batches of a metadata log that are held back until they are committed: until the high watermark is beyond
them.

They are truncated if another leader has something else in their place. So an unreadable batch matters only once it is
committed, and all batches before it are returned first."""

from collections import deque
from typing import Final, NamedTuple

from controller_core.recorder.metadata_log.batches import BatchReader, LogBatch, LogUnreadable


class Place(NamedTuple):
    """An offset up to which everything is read, and the epoch of the last read batch."""

    offset: int
    epoch: int


START: Final = Place(0, 0)


class DecidedOtherwise(Exception):
    """The log lacks records that were committed: the quorum has lost its disks, or was reset."""


class Undecided:
    """The uncommitted batches of one log, from a place on."""

    def __init__(self, begin: Place = START) -> None:
        self.decided = begin
        """The place up to which batches were returned."""
        self._high_watermark = -1
        self._batches: deque[LogBatch] = deque()
        self._unreadable: LogUnreadable | None = None
        """The reason why the last answer cannot be read beyond the end."""

    @property
    def end(self) -> Place:
        """The place up to which batches have come, committed or not. The next fetch begins there."""
        if not self._batches:
            return self.decided
        return Place(self._batches[-1].last_offset + 1, self._batches[-1].epoch)

    @property
    def is_read(self) -> bool:
        """True if everything known to be committed was returned."""
        return 0 <= self._high_watermark <= self.decided.offset

    @property
    def is_stuck(self) -> bool:
        """True if an unreadable batch came, which may still be truncated."""
        return self._unreadable is not None

    def add(self, content: bytes, high_watermark: int) -> None:
        """Take the readable batches behind the end; the rest will be fetched again. Leaders send at least one complete
        batch."""
        self._high_watermark, self._unreadable = high_watermark, None
        end = self.end.offset
        try:
            self._batches.extend(batch for batch in BatchReader().read(content) if batch.last_offset >= end)
        except LogUnreadable as error:
            self._unreadable = error
        else:
            if content and self.end.offset == end:
                said = (
                    f"no batch from offset {end} of the metadata log on is whole in the {len(content)} bytes that came"
                )
                self._unreadable = LogUnreadable(said)

    def give_up_from(self, offset: int) -> None:
        """Truncate the log at an offset, because the leader has something else there. Raises `DecidedOtherwise`."""
        while self._batches and self._batches[-1].last_offset >= offset:
            self._batches.pop()
        if not self._batches and offset < self.decided.offset:
            raise DecidedOtherwise(
                f"the quorum's log was decided up to offset {self.decided.offset}, and differs from offset {offset} on"
            )

    def take_decided(self) -> list[LogBatch]:
        """Return the committed batches. Raises `LogUnreadable` if the next one is committed and cannot be read."""
        found = []
        # The high watermark is exclusive: it is the first offset that is not committed.
        while self._batches and self._batches[0].last_offset < self._high_watermark:
            batch = self._batches.popleft()
            self.decided = Place(batch.last_offset + 1, batch.epoch)
            found.append(batch)
        if not found and self._unreadable is not None and self.end.offset < self._high_watermark:
            raise self._unreadable
        return found
