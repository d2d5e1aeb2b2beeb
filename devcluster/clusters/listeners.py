"""The listeners of a cluster's brokers: one for all, as most tests want it, or one for each purpose."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from devcluster.running.places import HERE, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerNames:
    """Which listener is whose; PLAINTEXT, but for those of which another protocol is said."""

    inter_broker: str = "PLAINTEXT"
    clients: str = "PLAINTEXT"
    control_plane: str | None = None
    """The one over which the controller and the brokers reach each other; None: the one between brokers."""
    others: tuple[str, ...] = ()
    """Further ones."""
    protocols: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Each once, that between brokers first."""
        named = (self.inter_broker, self.clients, self.control_plane, *self.others)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def protocol(self, name: str) -> str:
        """What is spoken at a listener."""
        return self.protocols.get(name, "PLAINTEXT")

    def properties(self, ports: Mapping[str, int], place: Place = HERE) -> dict[str, object]:
        """What a broker with these ports has in its file."""
        settings: dict[str, object] = {
            "listeners": ",".join(f"{name}://{place.address}:{ports[name]}" for name in self.names),
            "listener.security.protocol.map": ",".join(f"{name}:{self.protocol(name)}" for name in self.names),
            "inter.broker.listener.name": self.inter_broker,
        }
        if place.name is not None:
            hosts = {**dict.fromkeys(self.names, place.address), self.inter_broker: place.name}
            settings["advertised.listeners"] = ",".join(f"{name}://{hosts[name]}:{ports[name]}" for name in self.names)
        if self.control_plane is not None:
            settings["control.plane.listener.name"] = self.control_plane
        return settings


ONE_FOR_ALL: Final = ListenerNames()
CLIENTS_APART: Final = ListenerNames(inter_broker="INTERNAL", clients="CLIENT")
EACH_APART: Final = ListenerNames(inter_broker="INTERNAL", clients="CLIENT", control_plane="CONTROLLER")
