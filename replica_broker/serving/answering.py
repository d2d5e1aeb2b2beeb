"""Turns an answer function into an API of the listener: immediate or waiting, with its versions, and counted."""

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


def make_owned_api(
    versions: Versions[Any], answer: Callable[[Any], Awaitable[ResponsePayload | None]], limits: RequestLimits
) -> OwnedApi[Any]:
    """Return an API whose requests and responses have its newest version. None means no response."""
    return OwnedApi(versions, answer, limited=limits)


def make_local_api(
    versions: Versions[Any],
    answer: Callable[[RequestPayload], Awaitable[ResponsePayload]],
    limits: RequestLimits | None = None,
    unsupported: Callable[[], ResponsePayload] | None = None,
) -> LocalApi[Any]:
    """Return an API whose requests are passed to `answer` in their own version."""
    return LocalApi(versions=versions, answer=answer, unsupported=unsupported, turns=NoTurns(), limited=limits)


def make_async(answer: Callable[[Any], ResponsePayload]) -> Callable[[Any], Awaitable[ResponsePayload]]:
    """Return an asynchronous form of an immediate answer function."""

    async def answer_request(request: Any) -> ResponsePayload:
        return answer(request)

    return answer_request


def count_requests(api: ServedApi, counters: BrokerCounters) -> ServedApi:
    """Return the same API with a counter of its requests."""
    name = api.versions.newest.__name__.removesuffix("Request")
    answer: Callable[[Any], Awaitable[Any]] = api.answer

    async def answer_request(request: Any) -> Any:
        counters.count_request(name)
        return await answer(request)

    return replace(api, answer=answer_request)
