"""The form in which an operation offers to answer a request that only the controller answers.

An operation over a term answers the newest version of its request, with a response or a `Waiting`. A `Waiting` means
that the work has begun and later events bring the outcome, for example of a deletion of topics. The queue never waits
for that. The answer is given when it is ready, or when the client's timeout is over.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.controller.term.term import Term
from controller_core.model.quotas.mutation_quota import MutationQuota
from controller_core.wire.codecs.versions import Versions

Request = TypeVar("Request", bound=RequestPayload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """An answer that later events bring. `outcome` is called after each event, and once more at the timeout."""

    timeout_ms: float
    outcome: Callable[[Term], ResponsePayload | None]
    """Returns the response once everything is done, None before."""
    overdue: Callable[[Term], ResponsePayload]
    """Returns the response at the timeout: the results so far, and REQUEST_TIMED_OUT for the rest."""


Answer: TypeAlias = ResponsePayload | Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged(Generic[Request]):
    """The operation for a request whose mutations are charged to a quota (KIP-599)."""

    answer: Callable[[Term, Request, MutationQuota], Awaitable[Answer]]
    strict_since: int
    """The first version whose clients know the error of an exceeded quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedApi(Generic[Request]):
    """One API that the controller answers in order with the other events."""

    versions: Versions[Request]
    answer: Callable[[Term, Request], Awaitable[Answer]] | Charged[Request]
    refuse: Callable[[Request, ErrorCode], ResponsePayload]
    """Returns the response with an error for the whole request, most often that this process is not the controller."""
    takes: tuple[type[RequestPayload], ...] = ()
    """The types, besides the newest, that older versions are converted to because their answers differ in meaning."""
    needs_cluster_settings: bool = False
    """True if the answer depends on settings in brokers' files."""
    may_be_let_in: Callable[[Term, Request], bool] = lambda _term, _request: False
    """Returns True if the request may be answered during a long event (`between_groups`)."""

    async def answer_request(self, term: Term, request: Request, quota: MutationQuota) -> Answer:
        """Answer a request, charging it to the quota if the API has one."""
        if isinstance(self.answer, Charged):
            return await self.answer.answer(term, request, quota)
        return await self.answer(term, request)


AnyServedApi: TypeAlias = ServedApi[Any]
