"""The time that a metadata log says: what was recorded is as old as it is, however late somebody came to read it.

It goes by what is shown of the log, whose leader writes a record of nothing about twice a second. Where one writes none,
the time since the last record passes all the same.
"""

from typing import Final

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import TopicId

_NOTHING_CAME_MS: Final = 2_000
"""For so long a log stands still only where its leader writes nothing without a reason."""


class LogClock:
    """A `Clock`. `real`: the machine's."""

    def __init__(self, real: Clock) -> None:
        self._real = real
        self._now_ms = 0
        self._latest_ms = 0.0
        self._shown_at_ms = real.monotonic_ms()

    def show(self, time_ms: int) -> None:
        """It is so late by the log."""
        self._now_ms = time_ms
        self._latest_ms = max(self._latest_ms, time_ms)
        self._shown_at_ms = self._real.monotonic_ms()

    def stand_still(self) -> None:
        """The log is read to its end, and nothing came."""
        passed_ms = self._real.monotonic_ms() - self._shown_at_ms
        if passed_ms >= _NOTHING_CAME_MS:
            self.show(self._now_ms + int(passed_ms))

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> float:
        return self._latest_ms

    async def sleep_ms(self, duration_ms: float) -> None:
        await self._real.sleep_ms(duration_ms)

    def new_topic_id(self) -> TopicId:
        return self._real.new_topic_id()
