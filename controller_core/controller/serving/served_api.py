"""A request that only the controller answers, and what answers it: the form in which operations offer themselves.

An operation over a term answers the newest version of its request. Its answer is a response, or a `Waiting`: what the
request asked for is begun and will be seen in the outcome of later events, as when topics are deleted. The queue never
waits for that; the answer is given when it is there, or when the client's time is over.
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
    """An answer that later events bring. `outcome` is asked after each of them, and once more when the time is over."""

    timeout_ms: float
    outcome: Callable[[Term], ResponsePayload | None]
    """The response once all is done, None before."""
    overdue: Callable[[Term], ResponsePayload]
    """The response when the time is over: what is done, and REQUEST_TIMED_OUT for the rest."""


Answer: TypeAlias = ResponsePayload | Waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged(Generic[Request]):
    """What answers a request whose mutations are charged to a quota (KIP-599)."""

    answer: Callable[[Term, Request, MutationQuota], Awaitable[Answer]]
    strict_since: int
    """The first version whose clients know that what exceeds the quota is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedApi(Generic[Request]):
    """One API that the controller answers in its turn among the other events."""

    versions: Versions[Request]
    answer: Callable[[Term, Request], Awaitable[Answer]] | Charged[Request]
    refuse: Callable[[Request, ErrorCode], ResponsePayload]
    """The response that carries an error for the request as a whole: most often that we are not the controller."""
    takes: tuple[type[RequestPayload], ...] = ()
    """What older versions are lifted into beside the newest, where they have another meaning that their answer keeps."""
    may_be_let_in: Callable[[Term, Request], bool] = lambda _term, _request: False
    """Whether it may be answered in the middle of a long event (`controller_core.controller.serving.between_groups`)."""

    async def answered(self, term: Term, request: Request, quota: MutationQuota) -> Answer:
        """Has a request answered."""
        if isinstance(self.answer, Charged):
            return await self.answer.answer(term, request, quota)
        return await self.answer(term, request)


AnyServedApi: TypeAlias = ServedApi[Any]
