"""The surroundings of a controller process: the interfaces to the world, and its settings."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from controller_core.controller.loop.clock import Clock
from controller_core.controller.term.term import Settings
from controller_core.journal.batches import Journal, NoJournal
from controller_core.wire.link import BrokerLinkFactory
from controller_core.zk.session import ZkSession


class ControllerSettings(Settings, Protocol):
    """The process's settings that the controller needs."""

    @property
    def shared(self) -> Mapping[str, str]:
        """The given settings that brokers' files have, too, by their names there."""
        ...

    @property
    def zookeeper_timeout_ms(self) -> int:
        """The time that ZooKeeper may be out of reach before the process gives up."""
        ...

    @property
    def brokers_timeout_ms(self) -> int:
        """The time that all registered brokers may be out of reach before the role is given back."""
        ...

    @property
    def hot_standby(self) -> bool:
        """True to load the state of the cluster and keep it current while another controller leads."""
        ...

    @property
    def exclusive(self) -> bool:
        """True to take the role from a Kafka broker without being asked."""
        ...

    @property
    def most_queued_requests(self) -> int:
        """The limit of waiting requests of brokers, and the same limit for all others. See `EventQueue`."""
        ...

    @property
    def journal_snapshot_interval_seconds(self) -> int:
        """The time between two records of the whole state in the journal."""
        ...

    @property
    def journal_alive_interval_seconds(self) -> int:
        """The time without a record after which the journal gets a sign of life of the controller."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Seams:
    """The interfaces of a controller to the world."""

    zk: ZkSession
    links: BrokerLinkFactory
    clock: Clock
    close_connections: Callable[[], Awaitable[None]]
    """Closes the connections of brokers that take this process for the controller, so that they look for another one.
    """
    journal: Journal = field(default_factory=NoJournal)
    whereabouts: str = "this machine"
    """A description of the place where this process runs, for people."""
    hosts: tuple[str, ...] = ()
    """The hosts that this process's connections to brokers may come from: names or addresses."""
