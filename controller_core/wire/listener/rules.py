"""The rules of a listener: the right that each API needs, and the handling of APIs without an answer here.

The controller's port and a broker's are the same listener code. Their differences are defined here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller_core.model.access import Need
from controller_core.wire.api_table import HANDLING, Handling, need_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerRules:
    """The rules of a listener. The defaults are the controller's."""

    need_of: Callable[[int], Need] = need_of
    """Returns the right that an API needs. It decides which budget a request's bytes are taken from."""
    handling: Mapping[int, Handling] = field(default_factory=lambda: HANDLING)
    """The handling of APIs that are not answered here. APIs outside of it are unknown."""
    why_not_passed_on: str = "is for brokers, and nothing is relayed (--no-relay)"
    """The reason to close a connection if nothing is relayed."""
