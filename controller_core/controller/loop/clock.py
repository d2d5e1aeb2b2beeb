"""The interface to time and to unique identifiers: the last two sources of nondeterminism."""

import asyncio
import time
import uuid
from typing import Protocol

from controller_core.model.ids import TopicId


class Clock(Protocol):
    """Time, and ids for new topics."""

    def now_ms(self) -> int:
        """Return the wall-clock time in milliseconds since 1970, for records that people read."""
        ...

    def monotonic_ms(self) -> float:
        """Return milliseconds of a monotonic clock, for measuring."""
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

    async def sleep_ms(self, duration_ms: float) -> None:
        await asyncio.sleep(duration_ms / 1000)

    def new_topic_id(self) -> TopicId:
        return TopicId(uuid.uuid4())
