"""The listeners of a cluster's brokers: one for all purposes, as in most tests, or one for each purpose."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from devcluster.running.places import HERE, Place


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerNames:
    """The listener for each purpose, and the protocol of each; the default protocol is PLAINTEXT."""

    inter_broker: str = "PLAINTEXT"
    clients: str = "PLAINTEXT"
    control_plane: str | None = None
    """The listener between the controller and the brokers; None: the listener between brokers."""
    others: tuple[str, ...] = ()
    """Further listeners."""
    protocols: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, each once, the listener between brokers first."""
        named = (self.inter_broker, self.clients, self.control_plane, *self.others)
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def protocol(self, name: str) -> str:
        """Return the protocol of a listener."""
        return self.protocols.get(name, "PLAINTEXT")

    def properties(self, ports: Mapping[str, int], place: Place = HERE) -> dict[str, object]:
        """Return the properties of a broker with these ports."""
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
