"""Estimates the bytes between two offsets of a leader's log, for MAX_BYTES_LAG and MIN_BYTES_LAG.

The seed's offsets are positions in a file; Kafka's count messages. So a leader records the end of each append in bytes,
and interpolates between the records. If there are too many, it drops every second one.
"""

from bisect import bisect_right
from typing import Final

_MOST_NOTES: Final = 512


class BytePositions:
    """The recorded positions of one leader's log."""

    def __init__(self, start_offset: int, end_offset: int, size_bytes: int) -> None:
        self._offsets = [start_offset, end_offset] if end_offset > start_offset else [end_offset]
        self._bytes = [0, size_bytes] if end_offset > start_offset else [size_bytes]

    def note(self, end_offset: int, size_bytes: int) -> None:
        """Record an append of this size that ended before the offset."""
        if len(self._offsets) >= _MOST_NOTES:
            # Keeps the first and the last record, so the interpolation still covers the whole log.
            del self._offsets[1:-1:2], self._bytes[1:-1:2]
        self._offsets.append(end_offset)
        self._bytes.append(self._bytes[-1] + size_bytes)

    def estimate_bytes(self, start_offset: int, end_offset: int) -> int:
        """Return the bytes from one offset to a larger one; 0 if it is not larger."""
        return max(0, round(self._interpolate(end_offset) - self._interpolate(start_offset)))

    def _interpolate(self, offset: int) -> float:
        after = bisect_right(self._offsets, offset)
        if after == 0:
            return self._bytes[0]
        if after == len(self._offsets):
            return self._bytes[-1]
        first, last = self._offsets[after - 1], self._offsets[after]
        share = (offset - first) / (last - first)
        return self._bytes[after - 1] + share * (self._bytes[after] - self._bytes[after - 1])
