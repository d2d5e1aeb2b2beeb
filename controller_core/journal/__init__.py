"""The journal of a cluster's state: every change the controller made, in order, and the code that reads it back.

`changes` records changes in memory, `record_encoder` turns them into records, and `writer` hands those to a `Sink` in a
thread of its own. `segments` is the sink that writes files, `reader` reads them, and `fold` computes the state from the
records. docs/journal.md describes the schema.
"""

from typing import Final

LINE_BYTES: Final = 16 << 20
SEGMENT_BYTES: Final = 1 << 30
"""The most bytes of a line and of a compressed segment's contents. Each is several times as much as the writers produce
with their default settings (tests/unit/pipeline/reading/test_caps.py), so only damage and hostile files have more."""
