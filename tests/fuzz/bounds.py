"""The memory that readers of foreign bytes may use: a fixed sum, and a sum for each byte.

An array in a message may have items of one byte each, which take some hundred bytes in memory; the sum for each byte
allows that. A length that is trusted before the bytes are there takes far more than both.
"""

import tracemalloc
from collections.abc import Callable
from typing import Final

FIXED_BYTES: Final = 1 << 20
BYTES_FOR_EACH: Final = 512


def read_within_bounds(read: Callable[[bytes], None], data: bytes) -> None:
    """Read, and raise `AssertionError` if that took more memory at any moment than `data` may take."""
    tracemalloc.start()
    try:
        read(data)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    allowed = FIXED_BYTES + BYTES_FOR_EACH * len(data)
    assert peak_bytes <= allowed, f"{len(data)} bytes took {peak_bytes} bytes of memory, {allowed} are allowed"
