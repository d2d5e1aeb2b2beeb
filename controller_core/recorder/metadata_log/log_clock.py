"""A clock with the time of a metadata log, so that records have the age of the events, however late they are read.

It follows the log's records. The leader writes an empty record about twice a second; if it writes none, the time since
the last record still passes."""

from typing import Final

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import TopicId

_NOTHING_CAME_MS: Final = 2_000
"""Milliseconds without a record after which the clock goes on. Before that the next empty record may just be late."""


class LogClock:
    """A `Clock`. `real`: the machine's clock."""

    def __init__(self, real: Clock) -> None:
        self._real = real
        self._now_ms = 0
        self._latest_ms = 0.0
        self._shown_at_ms = real.monotonic_ms()

    def show(self, time_ms: int) -> None:
        """Set the log's time."""
        self._now_ms = time_ms
        self._latest_ms = max(self._latest_ms, time_ms)
        self._shown_at_ms = self._real.monotonic_ms()

    def stand_still(self) -> None:
        """Let time pass, because the log is read to its end and nothing new came."""
        passed_ms = self._real.monotonic_ms() - self._shown_at_ms
        if passed_ms >= _NOTHING_CAME_MS:
            self.show(self._now_ms + int(passed_ms))

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> float:
        return self._latest_ms

    def uptime(self) -> None:
        """Return None: the log's time is of several machines."""

    async def sleep_ms(self, duration_ms: float) -> None:
        await self._real.sleep_ms(duration_ms)

    def new_topic_id(self) -> TopicId:
        return self._real.new_topic_id()
