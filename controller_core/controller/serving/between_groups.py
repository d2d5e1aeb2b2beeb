"""Requests that are answered between two groups of a long event, ahead of the waiting events.

Leaders request ISR changes all the time and wait for the answers. A controller that handles the death of a broker with
a hundred thousand replicas must not leave them waiting for seconds. So an operation pauses (`run_in_groups`) when
everything decided is written, recorded and sent, and an event pauses while it writes its log lines. In a pause the
requests whose API allows it are answered, each to its end. All other events wait for their turn.
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
    """The requests of one queue that may be answered in a pause."""

    queue: EventQueue
    requests: OpenRequests
    metrics: ControllerMetrics
    find_term: Callable[[], Term | None]
    """Returns the present term. Its operations answer the requests."""

    def are_wanted(self) -> bool:
        """Return True if a request waits that may be answered now."""
        term = self.find_term()
        return term is not None and self.queue.has_request(self._let_in(term))

    async def serve(self) -> None:
        """Answer the waiting requests that may be answered in a pause, but none that arrives during it."""
        for _ in range(len(self.queue)):
            term = self.find_term()
            queued = self.queue.take_request(self._let_in(term)) if term is not None else None
            if term is None or queued is None:
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
            with (
                term.journal.record_nested(received, queued.since_ms),
                term.state_change_log.record_nested(type(received).__name__),
            ):
                await self.requests.answer(term, received)
                term.send_requests()
        finally:
            self.requests.refuse(received)  # unless it is answered
        elapsed_ms = term.clock.monotonic_ms() - started_ms
        self.metrics.event_time.labels(type(received).__name__).observe(elapsed_ms / 1000)
