"""One queue, one event at a time.

Watches, requests, answers and timers all end here; `Controller` takes one event, handles it to its end, and takes the
next. So no handler ever sees another's half-done work, and none of the controller's state needs a lock.

Events about the role go before all others: what a controller that has lost it does with those is in vain, and who stands by
should not wait for that.

Requests are the one kind of event that strangers choose, so there is room for so many of them: who finds none waits before
he is in the queue, and sends nothing more meanwhile. What brokers ask has room of its own, or clients could keep it out,
and with it what may be let in between others (`serving.between_groups`).
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
    """An event and when it came, on the clock's monotonic time."""

    event: Event
    since_ms: float


class EventQueue:
    """First in, first out, but for the role. An event that equals one that still waits is not queued again."""

    def __init__(self, clock: Clock, *, most_requests: int = 500) -> None:
        """`most_requests`: so many of brokers have room, and so many of all others."""
        self._clock = clock
        self._room = {is_broker: asyncio.Semaphore(most_requests) for is_broker in (True, False)}
        self._of_role: deque[Queued] = deque()
        self._waiting: deque[Queued] = deque()
        self._pending: set[Event] = set()
        self._requests = 0
        """How many of those that wait are requests; answers of brokers wait by the thousand during a long event."""
        self._arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._of_role) + len(self._waiting)

    def put(self, event: Event) -> None:
        """Queues an event that is no request; never blocks."""
        assert not isinstance(event, RequestReceived), "there is room for so many: put_request"
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
        """Queues a request when there is room for it, in the order of arrival."""
        await self._room[_is_of_broker(received)].acquire()
        self._requests += 1
        self._append(received)

    async def next(self) -> Queued:
        """Waits for an event and takes it from the queue."""
        while not self:
            self._arrived.clear()
            await self._arrived.wait()
        queued = (self._of_role or self._waiting).popleft()
        if isinstance(queued.event, RequestReceived):
            self._make_room(queued.event)
        if not _is_unique(queued.event):
            self._pending.discard(queued.event)
        if isinstance(queued.event, TopicModified):
            return Queued(event=self._with_others(queued.event), since_ms=queued.since_ms)
        return queued

    def _with_others(self, event: TopicModified) -> TopicModified:
        """The same event for all topics of which one waits: they are read together, and each says only to look again."""
        others = [queued.event for queued in self._waiting if isinstance(queued.event, TopicModified)]
        if not others:
            return event
        self._waiting = deque(queued for queued in self._waiting if not isinstance(queued.event, TopicModified))
        self._pending.difference_update(others)
        return TopicModified(event.topic, others=tuple(other.topic for other in others))

    def has_request(self, wanted: Callable[[RequestReceived], bool]) -> bool:
        """Whether such a request waits."""
        return self._requests > 0 and any(
            isinstance(queued.event, RequestReceived) and wanted(queued.event) for queued in self._waiting
        )

    def take_request(self, wanted: Callable[[RequestReceived], bool]) -> Queued | None:
        """Takes the first such request out of its turn; None where none waits."""
        for position, queued in enumerate(self._waiting if self._requests else ()):
            if isinstance(queued.event, RequestReceived) and wanted(queued.event):
                del self._waiting[position]
                self._make_room(queued.event)
                return queued
        return None

    def withdraw_requests(self) -> list[RequestReceived]:
        """Takes every waiting request out of the queue: a controller that resigns answers them at once (KAFKA-10193)."""
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
