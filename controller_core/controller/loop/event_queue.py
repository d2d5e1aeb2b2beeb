"""The event queue: one queue, one event at a time.

Watches, requests, answers and timers all put their events here. `Controller` takes one event, handles it to its end,
and takes the next. So no handler sees the unfinished work of another, and the controller's state needs no lock.

Events about the role go before all others. A controller that has lost the role would handle the others in vain, and a
standby should not wait for them.

Only requests are sent by strangers, so their number is limited. A connection whose request finds no room waits, and
sends no other request. Brokers have room of their own, so that clients cannot keep their requests out, or delay those
that are answered between the groups of a long event (`serving.between_groups`).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.events import BrokerAnswered, Event, RequestReceived, RoleEvent, TopicModified
from controller_core.model.access import Need
from controller_core.wire.api_table import need_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """An event with its time of arrival, on the clock's monotonic time."""

    event: Event
    since_ms: float


class EventQueue:
    """First in, first out, except for the role. An event that equals a waiting one is not queued again."""

    def __init__(self, clock: Clock, *, most_requests: int = 500) -> None:
        """`most_requests`: the limit of waiting requests of brokers, and the same limit for all others."""
        self._clock = clock
        self._room = {is_broker: asyncio.Semaphore(most_requests) for is_broker in (True, False)}
        self._of_role: deque[Queued] = deque()
        self._waiting: deque[Queued] = deque()
        self._pending: set[Event] = set()
        self._requests = 0
        """The number of waiting requests.

        It saves a search: during a long event brokers' answers wait by the thousand.
        """
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._of_role) + len(self._waiting)

    def put(self, event: Event) -> None:
        """Queue an event that is not a request. Never blocks."""
        assert not isinstance(event, RequestReceived), "requests are limited: use put_request"
        self._append(event)

    def _append(self, event: Event) -> None:
        if not _is_unique(event):
            if event in self._pending:
                return
            self._pending.add(event)
        line = self._of_role if isinstance(event, RoleEvent) else self._waiting
        line.append(Queued(event=event, since_ms=self._clock.monotonic_ms()))
        self._arrived.set()

    async def put_request(self, received: RequestReceived) -> None:
        """Queue a request as soon as there is room for it, in the order of arrival."""
        await self._room[_is_of_broker(received)].acquire()
        self._requests += 1
        self._append(received)

    async def next(self) -> Queued:
        """Wait for an event and take it from the queue."""
        while not self:
            self._arrived.clear()
            await self._arrived.wait()
        queued = (self._of_role or self._waiting).popleft()
        if isinstance(queued.event, RequestReceived):
            self._make_room(queued.event)
        if not _is_unique(queued.event):
            self._pending.discard(queued.event)
        if isinstance(queued.event, TopicModified):
            return Queued(event=self._merge_others(queued.event), since_ms=queued.since_ms)
        return queued

    def _merge_others(self, event: TopicModified) -> TopicModified:
        """Merge the event with all waiting ones of its kind. Their topics are read together, so one event is enough."""
        others = [queued.event for queued in self._waiting if isinstance(queued.event, TopicModified)]
        if not others:
            return event
        self._waiting = deque(queued for queued in self._waiting if not isinstance(queued.event, TopicModified))
        self._pending.difference_update(others)
        return TopicModified(event.topic, others=tuple(other.topic for other in others))

    def has_request(self, wanted: Callable[[RequestReceived], bool]) -> bool:
        """Return True if a matching request waits."""
        return self._requests > 0 and any(
            isinstance(queued.event, RequestReceived) and wanted(queued.event) for queued in self._waiting
        )

    def take_request(self, wanted: Callable[[RequestReceived], bool]) -> Queued | None:
        """Take the first matching request ahead of its turn; None if none waits."""
        for position, queued in enumerate(self._waiting if self._requests else ()):
            if isinstance(queued.event, RequestReceived) and wanted(queued.event):
                del self._waiting[position]
                self._make_room(queued.event)
                return queued
        return None

    def withdraw_requests(self) -> list[RequestReceived]:
        """Take every waiting request out of the queue. A controller that resigns answers them at once (KAFKA-10193)."""
        requests = [queued.event for queued in self._waiting if isinstance(queued.event, RequestReceived)]
        self._waiting = deque(queued for queued in self._waiting if not isinstance(queued.event, RequestReceived))
        for received in requests:
            self._make_room(received)
        return requests

    def _make_room(self, received: RequestReceived) -> None:
        self._requests -= 1
        self._room[_is_of_broker(received)].release()


def _is_unique(event: Event) -> bool:
    return isinstance(event, RequestReceived | BrokerAnswered)


def _is_of_broker(received: RequestReceived) -> bool:
    return need_of(int(received.request.__api_key__)) is Need.BROKER
