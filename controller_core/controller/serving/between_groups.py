"""Requests that are answered between two groups of a long event, and before the events that wait.

Leaders ask for ISR changes all the time and wait for the answers; a controller that handles the death of a broker with a
hundred thousand replicas must not leave them waiting for seconds. So where an operation pauses (`in_groups`: all that it
has decided is written, remembered and sent, and the rest will be decided from the state as it is then), and where an event
is over but for its lines in the log, requests whose API says that they may be let in are answered, each to its end. All
other events wait for their turn.
"""

from collections.abc import Callable
from dataclasses import dataclass

from controller_core.controller.loop.event_queue import EventQueue, Queued
from controller_core.controller.loop.events import RequestReceived
from controller_core.controller.serving.metrics import ControllerMetrics
from controller_core.controller.serving.open_requests import OpenRequests
from controller_core.controller.term.term import Term


@dataclass(frozen=True, slots=True)
class RequestsBetweenGroups:
    """The requests that are let in, out of one queue."""

    queue: EventQueue
    requests: OpenRequests
    metrics: ControllerMetrics

    def are_wanted(self, term: Term) -> bool:
        """Whether a request waits that would be let in now."""
        return self.queue.has_request(self._let_in(term))

    async def serve(self, term: Term) -> None:
        """Answers the requests that wait and may be let in; not those that come meanwhile."""
        for _ in range(len(self.queue)):
            queued = self.queue.take_request(self._let_in(term))
            if queued is None:
                return
            await self._answer(term, queued)

    def _let_in(self, term: Term) -> Callable[[RequestReceived], bool]:
        return lambda received: term.state.is_loaded and self.requests.may_be_let_in(term, received)

    async def _answer(self, term: Term, queued: Queued) -> None:
        received = queued.event
        assert isinstance(received, RequestReceived)
        started_ms = term.clock.monotonic_ms()
        self.metrics.event_queue_time.observe((started_ms - queued.since_ms) / 1000)
        try:
            with term.journal.nested(received, queued.since_ms), term.state_change_log.nested(type(received).__name__):
                await self.requests.answer(term, received)
                term.send_requests()
        finally:
            self.requests.refuse(received)  # unless it is answered
        elapsed_ms = term.clock.monotonic_ms() - started_ms
        self.metrics.event_time.labels(type(received).__name__).observe(elapsed_ms / 1000)
