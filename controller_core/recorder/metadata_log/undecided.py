"""What has come of a metadata log, and is kept back until it is decided: until the high watermark is beyond it.

It is given up where another leader has something else in its place. So what cannot be read is no trouble before it is
decided, and all before it is given out first.
"""

from collections import deque
from typing import Final, NamedTuple

from controller_core.recorder.metadata_log.batches import BatchReader, LogBatch, LogUnreadable


class Place(NamedTuple):
    """An offset, before which all is read, and the epoch of what was read last."""

    offset: int
    epoch: int


START: Final = Place(0, 0)


class DecidedOtherwise(Exception):
    """The log does not have what it had decided: the quorum has lost its disks, or was told to forget."""


class Undecided:
    """Of one log, from a place on."""

    def __init__(self, begin: Place = START) -> None:
        self.decided = begin
        """Up to where batches were given out."""
        self._high_watermark = -1
        self._batches: deque[LogBatch] = deque()
        self._unreadable: LogUnreadable | None = None
        """Why nothing of what came last can be read from the end on."""

    @property
    def end(self) -> Place:
        """Up to where batches have come, decided or not: the next ones follow there."""
        if not self._batches:
            return self.decided
        return Place(self._batches[-1].last_offset + 1, self._batches[-1].epoch)

    @property
    def is_read(self) -> bool:
        """Whether all was given out that is decided as far as is known."""
        return 0 <= self._high_watermark <= self.decided.offset

    @property
    def is_stuck(self) -> bool:
        """Whether something came that cannot be read, and may be given up yet."""
        return self._unreadable is not None

    def add(self, content: bytes, high_watermark: int) -> None:
        """Takes what can be read of what follows the end; the rest comes again. Leaders send one batch whole at least."""
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
        """The leader has something else from there on. Raises `DecidedOtherwise`."""
        while self._batches and self._batches[-1].last_offset >= offset:
            self._batches.pop()
        if not self._batches and offset < self.decided.offset:
            raise DecidedOtherwise(
                f"the quorum's log was decided up to offset {self.decided.offset}, and differs from offset {offset} on"
            )

    def take_decided(self) -> list[LogBatch]:
        """Those that are decided. Raises `LogUnreadable` where the next one is, and cannot be read."""
        found = []
        while self._batches and self._batches[0].last_offset < self._high_watermark:
            batch = self._batches.popleft()
            self.decided = Place(batch.last_offset + 1, batch.epoch)
            found.append(batch)
        if not found and self._unreadable is not None and self.end.offset < self._high_watermark:
            raise self._unreadable
        return found
