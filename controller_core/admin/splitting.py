"""Requests with several parts, some of which are refused: the others go to the controller, and all are answered.

The remaining request has the same type, so the code that answers it needs no knowledge of rights, and refused parts
never reach it. The results are merged in the order of the request.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from controller_core.controller.loop.slices import slice_up
from controller_core.wire.messages import NO_THROTTLE

Request = TypeVar("Request")
Response = TypeVar("Response")
Part = TypeVar("Part")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Split(Generic[Request, Response]):
    """A request without its refused parts, and the function that completes its answer."""

    allowed: Request | None
    """The request with the allowed parts, or None if nothing is left."""
    merge: Callable[[Response | None], Response]
    """Returns the whole answer for the answer to `allowed`."""

    async def answer_allowed(self, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        """Answer the allowed parts, and return the whole answer."""
        return self.merge(None if self.allowed is None else await answer(self.allowed))


async def find_refused_parts(parts: Iterable[Part], why_not: Callable[[Part], Result | None]) -> dict[int, Result]:
    """Return the results of refused parts, by position. Large numbers of parts are checked in slices."""
    return {at: result async for at, part in slice_up(enumerate(parts)) if (result := why_not(part)) is not None}


def remove_refused_parts(
    request: Any,
    parts: str,
    refused: Mapping[int, Any],
    response_type: Callable[..., Any],
    results: str,
    merge: Callable[[Any], Any] | None = None,
) -> Split[Any, Any]:
    """Return a request without the refused of its parts, which are in the field `parts`.

    The whole answer is of the response type, and its field `results` has a result for each part: its refusal, or the
    next of the other answers. `merge` may make another one."""
    asked = getattr(request, parts)
    left = tuple(part for at, part in enumerate(asked) if at not in refused)
    count = len(asked)  # the answer may wait longer than the request stays in memory

    def merge_results(response: Any) -> Any:
        others = iter(getattr(response, results) if response else ())
        merged = tuple(refused[at] if at in refused else next(others) for at in range(count))
        complete = response or response_type(throttle_time=NO_THROTTLE, **{results: ()})
        return replace(complete, **{results: merged})

    return Split(allowed=replace(request, **{parts: left}) if left else None, merge=merge or merge_results)


def remove_refused_topics(
    request: Any, refused: Mapping[int, Any], response_type: Callable[..., Any]
) -> Split[Any, Any]:
    """Return a request without the refused of its topics. The whole answer has one result for each name, like the
    controller's own."""

    def merge(response: Any) -> Any:
        by_name = {result.name: result for result in (*refused.values(), *(response.results if response else ()))}
        return response_type(
            throttle_time=response.throttle_time if response else NO_THROTTLE,
            results=tuple(by_name[name] for name in dict.fromkeys(topic.name for topic in request.topics)),
        )

    return remove_refused_parts(request, "topics", refused, response_type, "results", merge)
