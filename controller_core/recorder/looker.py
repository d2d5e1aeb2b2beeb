"""The seam between a recorder and whatever tells it of a cluster: what a look finds, and what can be asked.

Whoever looks knows the whole state after each look. The recorder compares it with the one before, guesses the causes, and
writes both down; it needs to know nothing of where the state comes from.
"""

from dataclasses import dataclass, field
from typing import Protocol

from controller_core.journal.batches import StateCopy
from controller_core.journal.changes import Change
from controller_core.journal.observed import Touched
from controller_core.model.ids import BrokerId, ControllerEpoch, TopicId


class OutOfSight(Exception):
    """Nothing is seen of the cluster for now. Retriable: the next look that succeeds sees what this one missed."""


class ClusterLost(Exception):
    """The cluster was out of sight for longer than is waited for; the message says what to look after. Ends the process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """Who is the controller, in which epoch."""

    controller_id: BrokerId
    epoch: ControllerEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What a look found."""

    cluster_id: str | None = None
    role: Role | None = None
    """None where there is no controller."""
    state: StateCopy = field(default_factory=StateCopy)
    """What is as it was at the look before is best the same object: it is not compared then."""
    shutting_down: frozenset[BrokerId] = frozenset()
    """The brokers that have asked to be relieved, as far as that is told."""
    touched: Touched | None = None
    """What may differ from a state of an earlier look; None: anything may."""
    position: int | None = None
    """The offset of the last event that the state has; None where nothing numbers events."""
    is_recorded: bool = False
    """Whether it is the state before a journal's last event: what follows it goes on with that journal."""
    is_last: bool = True
    """Whether it is the newest that there is: else what came next is there already, and the next look needs no rest."""


def creation_of(topic_id: TopicId) -> int:
    """What stands where journals have the zxid of a topic's creation, where there is no ZooKeeper: a part of its id."""
    return topic_id.int >> 65


class Looker(Protocol):
    """Looks at one cluster. One look at a time; what cannot be read is reported, and counts as what it was before."""

    @property
    def reads(self) -> int:
        """How many things were read so far, be they znodes, records or answers: its metric."""
        ...

    async def look(self, *, everything: bool = False) -> View:
        """The state after what came next; with `everything` also of what nobody told of. Raises `OutOfSight`."""
        ...

    def is_unobserved(self, change: Change) -> bool:
        """Whether a change that the last look found happened while nobody looked on, so that neither when nor why is
        known."""
        ...

    async def wait(self, timeout_ms: float) -> None:
        """Returns when there is something to look at, at the latest after this time."""
        ...

    async def read_role(self) -> Role | None:
        """Who is the controller, asked anew: it is said to be alive then. Raises `OutOfSight`."""
        ...

    async def regain_sight(self) -> None:
        """After `OutOfSight`: returns when looking may succeed again. Raises `ClusterLost`."""
        ...
