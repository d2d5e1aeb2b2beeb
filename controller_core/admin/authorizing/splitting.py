"""A request of several parts, some of which are refused: the others go to the controller, and all are answered.

What goes on is a request of the same kind, so whoever answers it knows nothing of rights. What is refused never reaches it.
The answer is put together in the request's order.
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
    """What becomes of a request."""

    allowed: Request | None
    """The request with what may be; None where nothing is left."""
    merge: Callable[[Response | None], Response]
    """The whole answer, from that to `allowed`."""

    async def answered(self, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        """Has what is left of the request answered."""
        return self.merge(None if self.allowed is None else await answer(self.allowed))


async def refused_parts(parts: Iterable[Part], why_not: Callable[[Part], Result | None]) -> dict[int, Result]:
    """What is refused with which result, by its position. Very many are looked at in slices."""
    return {at: result async for at, part in slice_up(enumerate(parts)) if (result := why_not(part)) is not None}


def allowed_parts(parts: tuple[Part, ...], refused: Mapping[int, Any]) -> tuple[Part, ...]:
    """Those that are not refused, in their order."""
    return tuple(part for at, part in enumerate(parts) if at not in refused)


def in_order(parts: tuple[Any, ...], refused: Mapping[int, Result], answered: Iterable[Result]) -> tuple[Result, ...]:
    """A result for each part: what it was refused with, or the next one that was answered."""
    others = iter(answered)
    return tuple(refused[at] if at in refused else next(others) for at in range(len(parts)))
