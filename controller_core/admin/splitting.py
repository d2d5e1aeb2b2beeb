"""Requests with several parts, some of which are refused: the others go to the controller, and all are answered.

The remaining request has the same type, so the code that answers it needs no knowledge of rights, and refused parts
never reach it. The results are merged in the order of the request.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from controller_core.controller.loop.slices import slice_up

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


def select_allowed_parts(parts: tuple[Part, ...], refused: Mapping[int, Any]) -> tuple[Part, ...]:
    """Return the parts that are not refused, in order."""
    return tuple(part for at, part in enumerate(parts) if at not in refused)


def merge_results(
    parts: tuple[Any, ...], refused: Mapping[int, Result], answered: Iterable[Result]
) -> tuple[Result, ...]:
    """Return a result for each part: its refusal, or the next of the other answers."""
    others = iter(answered)
    return tuple(refused[at] if at in refused else next(others) for at in range(len(parts)))
