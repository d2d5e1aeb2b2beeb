"""Example messages of a type, the same in each run: the initial inputs of a fuzzer."""

import warnings
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis.errors import HypothesisWarning

from tests.unit.wire.codecs.strategies import messages

_OF_EACH: Final = 2


def some_messages(message_type: type[Any]) -> list[Any]:
    """Return a few messages; the first one is minimal."""
    found: list[Any] = []

    @settings(
        max_examples=_OF_EACH, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(messages(message_type))
    def take(message: Any) -> None:
        found.append(message)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)
        take()
    return found
