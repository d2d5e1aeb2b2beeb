"""Turns an answer function into an API of the listener, for each caller by its rights, and counted."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.admin.authorizing.authorization import Authorization
from controller_core.admin.rights import EVERYTHING, NOTHING, Rights
from controller_core.admin.splitting import Split
from controller_core.model.authorization.principal import Caller
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.listener.listener import LocalApi, OwnedApi
from controller_core.wire.listener.owned_api import OwnedAnswer, Pending
from controller_core.wire.listener.turns import NoTurns, Turns
from replica_broker.counters import BrokerCounters


class FindRights(Protocol):
    """Finds the rights of a caller."""

    async def __call__(self, *, as_follower: bool = False) -> Rights:
        """Return the caller's rights. Raises `NoAnswerNow` if they are not known yet.

        `as_follower`: the caller says that it is a broker. Then its address must be one of brokers, unless ACLs judge
        it by a login.
        """
        ...


MayFollow = Callable[[Caller], Awaitable[bool]]
"""Returns True if the caller's address is one of brokers."""


async def find_all_rights(*, as_follower: bool = False) -> Rights:
    """See `FindRights`. Every caller has all rights."""
    return EVERYTHING


async def let_all_follow(caller: Caller) -> bool:
    """See `MayFollow`. Every caller may follow."""
    return True


Answer = Callable[[Any, FindRights], Awaitable[OwnedAnswer]]
LocalAnswer = Callable[[Any, FindRights], Awaitable[ResponsePayload]]
Refuse = Callable[[Any, ErrorCode], ResponsePayload]


@dataclass(frozen=True, slots=True)
class ApiMaker:
    """Makes APIs. Without an authorization every caller has all rights, but only brokers may follow."""

    counters: BrokerCounters
    authorization: Authorization | None
    may_follow: MayFollow

    def make_owned_api(
        self, versions: Versions[Any], answer: Answer, limits: RequestLimits, refuse: Refuse | None = None
    ) -> OwnedApi[Any]:
        """Return an API whose requests and responses have its newest version. None means no response."""
        answer_to = self._make_answer_to(versions, answer)
        return OwnedApi(versions, _never, refuse, limited=limits, answer_to=lambda asked: answer_to(asked.caller))

    def make_local_api(
        self,
        versions: Versions[Any],
        answer: LocalAnswer,
        limits: RequestLimits | None = None,
        refuse: Refuse | None = None,
        unsupported: Callable[[], ResponsePayload] | None = None,
        *,
        may_wait: bool = True,
    ) -> LocalApi[Any]:
        """Return an API whose requests are passed to `answer` in their own version. `may_wait`: see `Api.may_wait`."""
        return LocalApi(
            versions=versions,
            answer=_never,
            unsupported=unsupported,
            refuse=refuse,
            turns=NoTurns() if may_wait else Turns(),
            limited=limits,
            answer_to=self._make_answer_to(versions, answer),
        )

    def _make_answer_to(
        self, versions: Versions[Any], answer: Answer
    ) -> Callable[[Caller], Callable[[Any], Awaitable[Any]]]:
        name = versions.newest.__name__.removesuffix("Request")

        async def answer_request(request: Any, caller: Caller) -> Any:
            self.counters.count_request(name)

            async def find_rights(*, as_follower: bool = False) -> Rights:
                is_judged_by_acls = self.authorization is not None and caller.is_authenticated
                if as_follower and not is_judged_by_acls and not await self.may_follow(caller):
                    return NOTHING
                return EVERYTHING if self.authorization is None else await self.authorization.rights_of(caller)

            return await answer(request, find_rights)

        return lambda caller: lambda request: answer_request(request, caller)


def make_async(answer: Callable[[Any], ResponsePayload]) -> LocalAnswer:
    """Return an asynchronous form of an immediate answer function that needs no rights."""

    async def answer_request(request: Any, _: FindRights) -> ResponsePayload:
        return answer(request)

    return answer_request


def make_awaitable(answer: Callable[[Any], ResponsePayload]) -> Callable[[Any], Awaitable[ResponsePayload]]:
    """Return an asynchronous form of an immediate answer function, for `authorize_parts`."""

    async def answer_request(request: Any) -> ResponsePayload:
        return answer(request)

    return answer_request


def pass_rights(
    answer: Callable[[Any, Rights], ResponsePayload],
) -> LocalAnswer:
    """Return an asynchronous form of an immediate answer function that needs the caller's rights."""

    async def answer_request(request: Any, find_rights: FindRights) -> ResponsePayload:
        return answer(request, await find_rights())

    return answer_request


def ignore_rights(answer: Callable[[Any], Awaitable[ResponsePayload | None]]) -> Answer:
    """Return an answer function that gives every caller the same answer. A gate may have judged the caller."""

    async def answer_request(request: Any, _: FindRights) -> ResponsePayload | None:
        return await answer(request)

    return answer_request


def authorize_parts(
    split: Callable[[Any, Rights], Awaitable[Split[Any, Any]]],
    answer: Callable[[Any], Awaitable[OwnedAnswer]],
) -> Answer:
    """Return an answer function that passes only the parts that the caller may ask for to `answer`."""

    async def answer_request(request: Any, find_rights: FindRights) -> OwnedAnswer:
        rights = await find_rights()
        if rights is EVERYTHING:
            return await answer(request)
        parts = await split(request, rights)
        merge: Callable[[Any], Any] = parts.merge
        answered = None if parts.allowed is None else await answer(parts.allowed)
        if not isinstance(answered, Pending):
            return cast(OwnedAnswer, merge(answered))

        async def merge_later(response: ResponsePayload) -> ResponsePayload:
            return cast(ResponsePayload, merge(response))

        return answered.then(merge_later)

    return answer_request


async def _never(_: RequestPayload) -> ResponsePayload:
    raise AssertionError("every caller has an answering function of its own")
