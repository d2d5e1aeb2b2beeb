"""The number of requests of each API that a server has received: counters in a memory-mapped file.

The measurement reads the file without a request to the server, and the counts of a killed server stay.
"""

import mmap
import struct
from collections import Counter
from pathlib import Path
from typing import Final, Self

_APIS: Final = 128
_NUMBER: Final = struct.Struct("<q")

API_NAMES: Final = {
    1: "Fetch",
    2: "ListOffsets",
    3: "Metadata",
    4: "LeaderAndIsr",
    5: "StopReplica",
    6: "UpdateMetadata",
    7: "ControlledShutdown",
    18: "ApiVersions",
    19: "CreateTopics",
    23: "OffsetForLeaderEpoch",
    56: "AlterPartition",
}


class MessageCounts:
    """The counters of one server, the only writer; a restarted server goes on counting."""

    def __init__(self, file: Path) -> None:
        size = _APIS * _NUMBER.size
        with file.open("a+b") as opened:
            opened.truncate(size)
            self._counters = mmap.mmap(opened.fileno(), size)

    def count(self, api_key: int) -> None:
        offset = api_key * _NUMBER.size
        (before,) = _NUMBER.unpack_from(self._counters, offset)
        _NUMBER.pack_into(self._counters, offset, before + 1)

    def close(self) -> None:
        self._counters.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_received(file: Path) -> Counter[str]:
    """Return the requests that a server has received so far, by API; empty if it was never started."""
    content = file.read_bytes() if file.exists() else b""
    counts = enumerate(number for (number,) in _NUMBER.iter_unpack(content))
    return Counter({API_NAMES.get(key, f"API {key}"): count for key, count in counts if count})
