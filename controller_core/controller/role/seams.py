"""What a controller process is put into: the world as it reaches it, and its settings."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

from controller_core.controller.loop.clock import Clock
from controller_core.controller.term.term import Settings
from controller_core.journal.batches import Journal, NoJournal
from controller_core.wire.link import BrokerLinkFactory
from controller_core.zk.session import ZkSession


class ControllerSettings(Settings, Protocol):
    """What the controller needs to know of its process's settings."""

    @property
    def zookeeper_timeout_ms(self) -> int:
        """How long ZooKeeper may be out of reach before the process gives up."""
        ...

    @property
    def brokers_timeout_ms(self) -> int:
        """How long all registered brokers may be out of reach before the role is given back."""
        ...

    @property
    def hot_standby(self) -> bool:
        """Whether the state of the cluster is read, and kept current, while another controller leads."""
        ...

    @property
    def exclusive(self) -> bool:
        """Whether the role is taken from a Kafka broker that has it, without being asked."""
        ...

    @property
    def most_queued_requests(self) -> int:
        """How many requests of brokers wait for their turn at the most, and how many of others. See `EventQueue`."""
        ...

    @property
    def journal_snapshot_interval_seconds(self) -> int:
        """How often the journal gets the whole state."""
        ...

    @property
    def journal_alive_interval_seconds(self) -> int:
        """After how long without a record the journal gets one that says that the controller is alive."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seams:
    """The world as a controller reaches it."""

    zk: ZkSession
    links: BrokerLinkFactory
    clock: Clock
    close_connections: Callable[[], Awaitable[None]]
    """Closes the connections of brokers that take this process for the controller, so that they look for another."""
    journal: Journal = field(default_factory=NoJournal)
    whereabouts: str = "this machine"
    """Where this process runs, in words for people."""
