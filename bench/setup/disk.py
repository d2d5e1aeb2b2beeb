"""The latency of a small synced write on this machine's disk: the least cost of ZooKeeper's `forceSync`."""

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Final

_LOG_BYTES: Final = 64 << 20
"""ZooKeeper's `preAllocSize`: a write to its log does not make the file longer."""
_WRITE: Final = b"x" * 300
"""About the size of a transaction of one partition's state."""


def sync_latency(folder: Path, *, writes: int = 300) -> dict[str, float]:
    """Return the milliseconds of an append with `fdatasync`, which ZooKeeper waits for."""
    latencies = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        descriptor = file.fileno()
        os.write(descriptor, bytes(_LOG_BYTES))
        os.fsync(descriptor)
        os.lseek(descriptor, 0, os.SEEK_SET)
        for _ in range(writes):
            began = time.perf_counter()
            os.write(descriptor, _WRITE)
            os.fdatasync(descriptor)
            latencies.append((time.perf_counter() - began) * 1000)
    percentiles = statistics.quantiles(latencies, n=100)
    return {"p50_ms": round(percentiles[49], 3), "p99_ms": round(percentiles[98], 3)}
