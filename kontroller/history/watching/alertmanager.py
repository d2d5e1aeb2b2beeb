"""Sends alerts to a Prometheus Alertmanager, API v2: when raised, repeatedly while active, and once when cleared.

An alert expires if its sender is silent, so each gets an end of four resend intervals from now. Alerts that could not
be sent stay due, and are sent with their latest state. Labels identify alerts, so sending one twice is harmless.
Retries use exponential backoff up to 30 seconds.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import aiohttp
import orjson
import structlog
from yarl import URL

from kontroller.history.alarms.records import CLEARED
from kontroller.history.watching.alarm_words import annotations, labels, rfc3339
from kontroller.history.watching.board import Key, Notice, Standing

log = structlog.get_logger()

MOST_AT_ONCE: Final = 500
_TIMEOUT: Final = aiohttp.ClientTimeout(total=10, connect=5)
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 30.0
_REFUSED: Final = (400, 413, 422)
"""The Alertmanager has taken the valid alerts of the batch. A retry would not help the rest."""


class Unreachable(Exception):
    """An Alertmanager did not take alerts. A retry may succeed."""


class _Alert(NamedTuple):
    began_us: int
    cause: str | None
    raised_s: float
    ended_s: float | None


class Alertmanager:
    """A receiver of alarms. `wall` is this machine's clock, in seconds. `resend_s` is the interval at which active
    alerts are resent."""

    def __init__(
        self,
        url: str,
        session: aiohttp.ClientSession,
        standing: Iterable[tuple[Key, Standing]],
        *,
        wall: Callable[[], float],
        resend_s: float = 60.0,
    ) -> None:
        address = URL(url)
        self.name = str(address.with_user(None))
        self.sent = self.failures = self.dropped = 0
        self._url = address.with_path(address.path.rstrip("/") + "/api/v2/alerts")
        self._session = session
        self._wall = wall
        self._resend_s = resend_s
        self._alerts = {key: _Alert(it.alarm.began_us, it.alarm.cause, it.raised_s, None) for key, it in standing}
        self._due = dict.fromkeys(self._alerts, 0.0)
        """The time at which each alert is due, by the clock of the event loop."""
        self._woken = asyncio.Event()

    @property
    def pending(self) -> int:
        """The number of alerts whose current state has not been sent."""
        return sum(due_s == 0.0 for due_s in self._due.values())

    def receive(self, notice: Notice) -> None:
        ended_s = notice.at_s if notice.alarm.state == CLEARED else None
        self._alerts[notice.key] = _Alert(notice.alarm.began_us, notice.alarm.cause, notice.raised_s, ended_s)
        self._due[notice.key] = 0.0
        self._woken.set()

    async def run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while True:
            self._woken.clear()
            try:
                await self.send()
            except Unreachable as error:
                if pause_s == _FIRST_PAUSE_S:
                    log.warning(
                        "alerts could not be sent and will be retried", alertmanager=self.name, reason=str(error)
                    )
                self.failures += 1
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
                continue
            pause_s = _FIRST_PAUSE_S
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), min(1.0, self._resend_s))

    async def send(self) -> None:
        """Send the due alerts in batches. Raises `Unreachable`."""
        while due := self._due_now():
            batch = {key: self._alerts[key] for key in due}
            await self._post([self._payload(key, alert) for key, alert in batch.items()])
            for key, alert in batch.items():
                self._note_sent(key, alert)

    def _due_now(self) -> list[Key]:
        now_s = asyncio.get_running_loop().time()
        return [key for key, due_s in self._due.items() if due_s <= now_s][:MOST_AT_ONCE]

    def _note_sent(self, key: Key, alert: _Alert) -> None:
        if self._alerts.get(key) is not alert:
            return  # it has changed during the request, and is due again
        if alert.ended_s is None:
            self._due[key] = asyncio.get_running_loop().time() + self._resend_s
        else:
            del self._alerts[key], self._due[key]

    def _payload(self, key: Key, alert: _Alert) -> dict[str, Any]:
        # A record may have a time in the future, and an Alertmanager ignores alerts that have not begun.
        starts_us = min(alert.began_us, round(alert.raised_s * 1e6))
        ends_s = self._wall() + 4 * self._resend_s if alert.ended_s is None else max(alert.ended_s, alert.raised_s)
        return {
            "labels": labels(key),
            "annotations": annotations(key, alert.began_us, alert.cause),
            "startsAt": rfc3339(starts_us),
            # An Alertmanager refuses an alert that ends when it starts, so add a microsecond.
            "endsAt": rfc3339(round(ends_s * 1e6) + 1),
        }

    async def _post(self, alerts: list[dict[str, Any]]) -> None:
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(
                self._url, data=orjson.dumps(alerts), headers=headers, timeout=_TIMEOUT, allow_redirects=False
            ) as answer:
                said = (await answer.content.read(500)).decode(errors="replace")
                status = answer.status
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(str(error) or type(error).__name__) from error
        if status in _REFUSED:
            self.dropped += 1
            log.error("alerts were refused", alertmanager=self.name, status=status, reason=said)
        elif status != 200:
            raise Unreachable(f"it answers {status}: {said}")
        else:
            self.sent += len(alerts)
