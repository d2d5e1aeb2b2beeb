"""The results in an answer: one for each item of a request, so that one bad item never disturbs the others.

A command raises the errors of results. The operator reports them one by one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from kio.schema.errors import ErrorCode

from controller_core.client.errors import OutcomeUnknown, Refused, make_error, require

Item = TypeVar("Item")
_MOMENTARY: Final = frozenset(
    {
        ErrorCode.unknown_server_error,
        ErrorCode.request_timed_out,
        ErrorCode.not_controller,
        ErrorCode.network_exception,
        ErrorCode.broker_not_available,
        ErrorCode.leader_not_available,
        ErrorCode.coordinator_load_in_progress,
        ErrorCode.coordinator_not_available,
        ErrorCode.not_coordinator,
        ErrorCode.throttling_quota_exceeded,
        ErrorCode.kafka_storage_error,
    }
)


def is_momentary(code: ErrorCode) -> bool:
    """Return True if an error is no verdict: nobody judged the request, and its effect is unknown.

    The cause of a verdict may end too, for example when a missing broker returns."""
    return code in _MOMENTARY


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of an item, or of a whole request."""

    code: ErrorCode = ErrorCode.none
    message: str | None = None

    @property
    def is_done(self) -> bool:
        """True for a success."""
        return self.code is ErrorCode.none

    @property
    def is_momentary(self) -> bool:
        """True if this is no verdict (see `is_momentary`)."""
        return is_momentary(self.code)

    def make_error(self, what: str) -> Refused | OutcomeUnknown | None:
        """Return the error; None for a success."""
        return make_error(what, self.code, self.message)

    def require(self, what: str) -> None:
        """Raise `Refused` or `OutcomeUnknown` unless it is a success."""
        require(what, self.code, self.message)


DONE: Final = Result()


@dataclass(frozen=True, slots=True, kw_only=True)
class Results(Generic[Item]):
    """The results in an answer to a request about several items."""

    overall: Result = DONE
    """An error here means that the request failed as a whole."""
    by_item: Mapping[Item, Result] = field(default_factory=dict)

    def require(self, what: str) -> Mapping[Item, Result]:
        """Return the results of the items. Raises `Refused` or `OutcomeUnknown` if the request failed as a whole."""
        self.overall.require(what)
        return self.by_item

    def spread(self, asked: Iterable[Item]) -> Mapping[Item, Result]:
        """Return the results of the items, or the error of the whole request for each item."""
        return self.by_item if self.overall.is_done else dict.fromkeys(asked, self.overall)
