"""How an answer becomes an API that the listener serves: at once or after a while, in which version, and counted."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.codecs.versions import Versions
from controller_core.wire.limits.request_limits import RequestLimits
from controller_core.wire.listener.listener import LocalApi, OwnedApi
from controller_core.wire.listener.turns import NoTurns
from replica_broker.counters import BrokerCounters

ServedApi = TypeVar("ServedApi", OwnedApi[Any], LocalApi[Any])


def owned(
    versions: Versions[Any], answer: Callable[[Any], Awaitable[ResponsePayload | None]], limits: RequestLimits
) -> OwnedApi[Any]:
    """An API that is asked and answered in its newest version; None is no answer."""
    return OwnedApi(versions, answer, limited=limits)


def local(
    versions: Versions[Any],
    answer: Callable[[RequestPayload], Awaitable[ResponsePayload]],
    limits: RequestLimits | None = None,
    unsupported: Callable[[], ResponsePayload] | None = None,
) -> LocalApi[Any]:
    """An API whose requests are given to `answer` as they came."""
    return LocalApi(versions=versions, answer=answer, unsupported=unsupported, turns=NoTurns(), limited=limits)


def at_once(answer: Callable[[Any], ResponsePayload]) -> Callable[[Any], Awaitable[ResponsePayload]]:
    """What waits for nothing, as what may wait."""

    async def answered(request: Any) -> ResponsePayload:
        return answer(request)

    return answered


def counted(api: ServedApi, counters: BrokerCounters) -> ServedApi:
    """The same API, whose requests are counted by its name."""
    name = api.versions.newest.__name__.removesuffix("Request")
    answer: Callable[[Any], Awaitable[Any]] = api.answer

    async def answered(request: Any) -> Any:
        counters.request_read(name)
        return await answer(request)

    return replace(api, answer=answered)
