"""The seam between a recorder and its source of a cluster's state.

A looker knows the whole state after each look. The recorder compares it with the one before, guesses causes, and
records both, without knowing the source."""

from dataclasses import dataclass, field
from typing import Protocol

from controller_core.journal.batches import StateCopy
from controller_core.journal.changes import Change
from controller_core.journal.observed import Touched
from controller_core.model.ids import BrokerId, TopicId
from controller_core.model.snapshot import Controller


class OutOfSight(Exception):
    """The cluster cannot be seen for now. Retriable: the next successful look sees what this one missed."""


class ClusterLost(Exception):
    """The cluster was out of sight for too long. The message says what to check. Ends the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The result of a look."""

    cluster_id: str | None = None
    role: Controller | None = None
    """None if there is no controller."""
    state: StateCopy = field(default_factory=StateCopy)
    """Unchanged parts should be the same objects as in the look before, because those are not compared."""
    shutting_down: frozenset[BrokerId] = frozenset()
    """Brokers that have asked for a controlled shutdown, as far as the source reveals it."""
    touched: Touched | None = None
    """The parts that may differ from the state of an earlier look; None: all may."""
    position: int | None = None
    """The offset of the last event in the state; None if nothing numbers events."""
    is_recorded: bool = False
    """True for the state before a journal's last event: the next views continue that journal."""
    is_last: bool = True
    """True if this is the newest state. Otherwise the next one is available, and the next look needs no pause."""


def derive_creation(topic_id: TopicId) -> int:
    """Return a part of the topic's id, for journals of clusters without ZooKeeper, in place of the zxid of the topic's
    creation."""
    return topic_id.int >> 65


class Looker(Protocol):
    """Looks at one cluster, one look at a time. Unreadable data is reported, and its former value stays."""

    @property
    def reads(self) -> int:
        """The number of znodes, records or answers read so far, for the metric."""
        ...

    async def look(self, *, everything: bool = False) -> View:
        """Return the next state; with `everything` also changes without a notification. Raises `OutOfSight`."""
        ...

    def is_unobserved(self, change: Change) -> bool:
        """Return True if a change of the last look happened out of sight, so that its time and cause are unknown."""
        ...

    async def wait(self, timeout_ms: float) -> None:
        """Return when there is something to look at, at the latest after this time."""
        ...

    async def read_role(self) -> Controller | None:
        """Ask for the controller again, which proves that it is alive. Raises `OutOfSight`."""
        ...

    async def regain_sight(self) -> None:
        """After `OutOfSight`, return when a look may succeed again. Raises `ClusterLost`."""
        ...
