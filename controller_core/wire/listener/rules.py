"""What a listener makes of requests before it looks into them: who must be asking, and what of those it has no answer to.

The controller's port and that of a broker are the same listener. What differs is said here, once for each of them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller_core.model.access import Need
from controller_core.wire.api_table import HANDLING, Handling, need_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerRules:
    """Those of the controller, unless said otherwise."""

    need_of: Callable[[int], Need] = need_of
    """Who must be asking for an API: it decides from whose budget a request takes its bytes."""
    handling: Mapping[int, Handling] = field(default_factory=lambda: HANDLING)
    """What becomes of the APIs that are not answered here; of one that is not in it nobody has heard."""
    why_not_passed_on: str = "is answered by brokers, and nothing is passed on (--no-relay)"
    """Why the connection is closed where nothing is passed on."""
