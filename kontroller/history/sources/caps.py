"""The most that readers take from others.

Each cap is several times as much as Kontroller's own writers produce with their default settings
(tests/unit/pipeline/reading/test_caps.py), so only damage and hostile servers reach one.
"""

from dataclasses import dataclass
from typing import Final

from controller_core.journal import LINE_BYTES, SEGMENT_BYTES

JOURNAL_BYTES: Final = 64 << 30
INDEX_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The caps of one reader, in bytes."""

    line_bytes: int = LINE_BYTES
    """One line of a journal or of a log. It is what a reader may have in memory at once."""
    file_bytes: int = SEGMENT_BYTES
    """One segment that a server lists, and the contents of one compressed file."""
    journal_bytes: int = JOURNAL_BYTES
    """All segments that a server lists."""
    index_bytes: int = INDEX_BYTES
    """The list of segments itself."""
