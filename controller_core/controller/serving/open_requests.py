"""The requests that this process has accepted and not yet answered: queued ones, and those whose answer is delayed.

Each of them is answered exactly once. A controller that resigns answers NOT_CONTROLLER to all of them at once, so that
the callers look for the next controller (KAFKA-10193).
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import structlog
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.events import AnswerOverdue, Event, RequestReceived
from controller_core.controller.loop.faults import find_fault
from controller_core.controller.serving.served_api import AnyServedApi, Waiting
from controller_core.controller.term.term import Term
from controller_core.controller.term.traces import is_untouched, take_traces
from controller_core.model.authorization.principal import Caller
from controller_core.model.quotas.mutation_quota import UNLIMITED, MutationQuota
from controller_core.supervision import start_task

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, eq=False)
class _Delayed:
    received: RequestReceived
    waiting: Waiting
    deadline_ms: float
    alarm: asyncio.Task[None]


class OpenRequests:
    """Answers requests by the table of served APIs, at once or after later events."""

    def __init__(self, apis: Iterable[AnyServedApi], clock: Clock, enqueue: Callable[[Event], None]) -> None:
        self._apis: Mapping[type[RequestPayload], AnyServedApi] = {
            taken: api for api in apis for taken in (api.versions.newest, *api.takes)
        }
        self._clock = clock
        self._enqueue = enqueue
        self._delayed: list[_Delayed] = []

    def receive(
        self, request: RequestPayload, quota: MutationQuota = UNLIMITED, caller: Caller | None = None
    ) -> RequestReceived:
        """Return the request as an event, with the future of its answer."""
        return RequestReceived(request, asyncio.get_running_loop().create_future(), quota, caller)

    async def answer(self, term: Term, received: RequestReceived) -> None:
        """Carry out a request, and answer it or delay its answer.

        A request fails alone if its error's class allows it and nothing can have been changed. Otherwise the error is
        raised.
        """
        before = take_traces(term)
        try:
            answer = await self._apis[type(received.request)].answer_request(term, received.request, received.quota)
        except Exception as error:
            fault = find_fault(error)
            if fault.policy.answer is None or not is_untouched(term, before):
                raise
            name = type(received.request).__name__
            log.exception("request failed, and has changed nothing", request=name, fault=fault.value)
            term.counts.count_failed_event(RequestReceived.__name__, fault)
            self.refuse(received, fault.policy.answer)
            return
        if isinstance(answer, Waiting):
            self._delay(received, answer)
        else:
            _give(received, answer)

    def may_be_let_in(self, term: Term, received: RequestReceived) -> bool:
        """Return True if a request need not wait for the end of a long event."""
        return self._apis[type(received.request)].may_be_let_in(term, received.request)

    def needs_cluster_settings(self, request: RequestPayload) -> bool:
        """Return True if the answer depends on settings in brokers' files."""
        return self._apis[type(request)].needs_cluster_settings

    def refuse(self, received: RequestReceived, error_code: ErrorCode = ErrorCode.not_controller) -> None:
        """Answer a request with an error, unless it is answered or delayed."""
        is_open = not received.answer.done()  # a refusal may be large, so it is only built if needed
        if is_open and all(delayed.received is not received for delayed in self._delayed):
            _give(received, self._apis[type(received.request)].refuse(received.request, error_code))

    def settle(self, term: Term) -> None:
        """Give the answers that are ready after the last event, and those whose time is over."""
        now_ms = self._clock.monotonic_ms()
        for delayed in list(self._delayed):
            response = delayed.waiting.outcome(term)
            if response is None and now_ms >= delayed.deadline_ms:
                response = delayed.waiting.overdue(term)
            if response is not None or delayed.received.answer.done():
                self._forget(delayed)
            if response is not None:
                _give(delayed.received, response)

    def refuse_delayed(self) -> None:
        """Answer every delayed request, because this process is no longer the controller."""
        for delayed in list(self._delayed):
            self._forget(delayed)
            self.refuse(delayed.received)

    def _delay(self, received: RequestReceived, waiting: Waiting) -> None:
        timeout_ms = max(waiting.timeout_ms, 0)
        self._delayed.append(
            _Delayed(
                received=received,
                waiting=waiting,
                deadline_ms=self._clock.monotonic_ms() + timeout_ms,
                alarm=start_task(self._sound(timeout_ms), name="alarm of an answer"),
            )
        )

    async def _sound(self, timeout_ms: float) -> None:
        await self._clock.sleep_ms(timeout_ms)
        self._enqueue(AnswerOverdue())

    def _forget(self, delayed: _Delayed) -> None:
        delayed.alarm.cancel()
        self._delayed.remove(delayed)


def _give(received: RequestReceived, response: ResponsePayload) -> None:
    if not received.answer.done():  # the caller may be gone
        received.answer.set_result(response)
