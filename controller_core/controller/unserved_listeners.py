"""Says under which of the brokers' listeners the controller is not found.

Brokers and clients that look for it there find nobody, wait, and say nothing of why. Each name is said once in a
term, and no more than `MOST_NAMES`, as a registration may have any; the metric has what is the case now.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import structlog

from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import Broker

MOST_NAMES: Final = 20

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class UnservedListeners:
    """What was said already."""

    listeners: ControllerListeners
    _said: set[str] = field(default_factory=set)

    def report(self, brokers: Iterable[Broker]) -> None:
        """Logs the listeners of these brokers that are not served, and what to change."""
        for name, remedy in self.listeners.unserved(brokers).items():
            if name not in self._said and len(self._said) < MOST_NAMES:
                self._said.add(name)
                log.error("the controller is not found under a listener of the brokers", listener=name, remedy=remedy)
