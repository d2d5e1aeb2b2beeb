"""The interface to time and to unique identifiers: the last two sources of nondeterminism."""

import asyncio
import functools
import hashlib
import os
import time
import uuid
from pathlib import Path
from typing import Final, Protocol

from controller_core.journal.batches import Uptime
from controller_core.model.ids import TopicId

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_CLOCKS_OF_CONTAINER: Final = Path("/proc/self/ns/time")
"""A link that names the container's offset of the uptime. Containers without an offset share one."""


class Clock(Protocol):
    """Time, and ids for new topics."""

    def now_ms(self) -> int:
        """Return the wall-clock time in milliseconds since 1970, for records that people read."""
        ...

    def monotonic_ms(self) -> float:
        """Return milliseconds of a monotonic clock, for measuring."""
        ...

    def uptime(self) -> Uptime | None:
        """Return the time since the machine was started, for records; None if this is no machine's clock."""
        ...

    async def sleep_ms(self, duration_ms: float) -> None: ...

    def new_topic_id(self) -> TopicId:
        """Return an id that no topic has had before (KIP-516)."""
        ...


class SystemClock:
    """The machine's clock and its source of randomness."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> float:
        return time.monotonic() * 1000

    def uptime(self) -> Uptime:
        # Unlike the monotonic clock, this one also counts the time in which the machine is suspended.
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic_ns()
        return Uptime(identify_boot(), now_ns // 1000)

    async def sleep_ms(self, duration_ms: float) -> None:
        await asyncio.sleep(duration_ms / 1000)

    def new_topic_id(self) -> TopicId:
        return TopicId(uuid.uuid4())


@functools.cache
def identify_boot(boot_id: Path = _BOOT_ID) -> str:
    """Return eight hexadecimal digits that name the machine's last start.

    If the system does not tell, they name this process."""
    try:
        boot = boot_id.read_text()
    except OSError:
        boot = uuid.uuid4().hex
    clocks = os.readlink(_CLOCKS_OF_CONTAINER) if _CLOCKS_OF_CONTAINER.is_symlink() else ""
    return hashlib.sha256(f"{boot}{clocks}".encode()).hexdigest()[:8]
