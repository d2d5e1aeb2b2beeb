"""The controller's verdict on the items of a request, in words for people."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from kio.schema.errors import ErrorCode

from controller_core.client.results import Result
from controller_operator.kafka.requests.rights import describe_error

Item = TypeVar("Item")
_DONE: Final = (ErrorCode.none,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Generic[Item]):
    """The items that failed."""

    trouble: str | None
    """The reason why some have no verdict; None if all have one. The request is then repeated."""
    refused: tuple[tuple[Item, str], ...]
    """The refused items, and the controller's reasons."""


def read_verdict(results: Mapping[Item, Result], right: str, done: Collection[ErrorCode] = _DONE) -> Verdict[Item]:
    """Return the verdict. `right`: the right that the request needs. `done`: the codes that are no failure."""
    failed = {item: result for item, result in results.items() if result.code not in done}
    said = {item: describe_error(result.code, result.message, right) for item, result in failed.items()}
    return Verdict(
        trouble=next((said[item] for item, result in failed.items() if result.is_momentary), None),
        refused=tuple((item, said[item]) for item, result in failed.items() if not result.is_momentary),
    )
