"""The copies of a move without progress."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controller_core.model.ids import BrokerId, TopicPartition

Stalled = Mapping[TopicPartition, tuple[BrokerId, ...]]
"""The brokers to which a partition is not copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stalls:
    """Copies without progress, by the sizes seen so far."""

    idle: Stalled = field(default_factory=dict)
    """Copies to which nothing has arrived for long."""
    on_failed_directories: Stalled = field(default_factory=dict)
    """Copies whose replica may be in a failed log directory."""
    falls_behind: bool = False
    """True if producers write as much as is copied."""


NO_STALLS: Final = Stalls()
