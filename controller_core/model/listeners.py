"""The controller's listeners: the names and addresses at which brokers and clients find it.

Brokers and clients look for the controller under the name of a listener. Brokers use `control.plane.listener.name`, or
`inter.broker.listener.name` if that is not set (always the latter for a controlled shutdown). Clients use the name of
the listener by which they reached the cluster. So the controller is listed under each listener name that brokers have:
with an address for each name, or with a single address under every name whose protocol is spoken there. It can be
hidden from listeners of clients: a node without an address on a listener is missing in the metadata of its clients.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from controller_core.model.metadata import Broker, Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerListeners:
    """The addresses of the controller, and the brokers' listener to which it sends its requests."""

    endpoints: tuple[Endpoint, ...]
    """At least one, in the form that brokers receive. The first has the name of the brokers' inter-broker listener."""
    control_plane: str | None = None
    """The brokers' listener for control requests. None: the inter-broker listener."""
    clients: str | None = None
    """If all names share one address: the listener whose broker addresses clients receive.

    None: the inter-broker listener.
    """
    hidden_from: tuple[str, ...] = ()
    """The brokers' listeners under which the controller is not listed. Brokers do not look for it there."""

    @property
    def inter_broker(self) -> str:
        return self.endpoints[0].listener

    @property
    def links(self) -> str:
        """The listener that the controller's own requests to brokers go to."""
        return self.control_plane or self.inter_broker

    @property
    def is_shared(self) -> bool:
        """True if one address serves all names."""
        return len(self.endpoints) == 1

    def find_client_listener(self, listener: str) -> str:
        """Return the listener whose broker addresses are sent to clients that connected to this one."""
        return self.clients or listener

    def find_endpoint(self, listener: str) -> Endpoint | None:
        """Return the address at which clients of a listener find the controller; None if they cannot."""
        if self.is_shared and listener not in self.hidden_from:
            return replace(self.endpoints[0], listener=listener)
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)

    def list_endpoints(self, brokers: Iterable[Broker]) -> tuple[Endpoint, ...]:
        """Return the endpoints of the controller that these brokers are sent."""
        if not self.is_shared:
            return self.endpoints
        (own,) = self.endpoints
        names = {
            endpoint.listener
            for broker in brokers
            for endpoint in broker.endpoints
            if endpoint.security_protocol == own.security_protocol
        }
        return (own, *(replace(own, listener=name) for name in sorted(names - {own.listener, *self.hidden_from})))

    def find_unserved(self, brokers: Iterable[Broker]) -> Mapping[str, str]:
        """Return the brokers' listeners under which the controller is missing without being hidden, each with the
        remedy."""
        brokers = list(brokers)
        found = {endpoint.listener: endpoint.security_protocol for endpoint in self.list_endpoints(brokers)}
        return {
            endpoint.listener: self._remedy(endpoint, found.get(endpoint.listener))
            for broker in brokers
            for endpoint in broker.endpoints
            if endpoint.listener not in self.hidden_from and found.get(endpoint.listener) != endpoint.security_protocol
        }

    def find_unknown(self, brokers: Iterable[Broker]) -> Sequence[str]:
        """Return the listener names in the settings that none of these brokers has."""
        had = {endpoint.listener for broker in brokers for endpoint in broker.endpoints}
        served = [endpoint.listener for endpoint in self.endpoints]
        named = [*served, self.control_plane, self.clients, *self.hidden_from]
        return [name for name in dict.fromkeys(named) if name is not None and name not in had]

    def _remedy(self, endpoint: Endpoint, ours: str | None) -> str:
        """Return what to change. `ours` is the protocol of the controller's listener of that name, if it has one."""
        name, protocol = endpoint.listener, endpoint.security_protocol
        if ours is not None:
            return (
                f"it uses {protocol}, but the controller uses {ours} under that name: set {name}:{protocol} in "
                "listener.security.protocol.map of --properties"
            )
        remedy = (
            f"add --listen {name}://HOST:PORT, with {name}:{protocol} in listener.security.protocol.map of --properties"
        )
        if self.is_shared:
            own = self.endpoints[0].security_protocol
            return (
                f"it uses {protocol}, but a single --listen serves only listeners of its own protocol, {own}: {remedy}"
            )
        return remedy
