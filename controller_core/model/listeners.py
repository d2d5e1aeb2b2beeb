"""The controller's listeners: under which names brokers and clients find it, at which addresses.

Whoever looks for the controller looks under the name of a listener: brokers under `control.plane.listener.name`, or
under `inter.broker.listener.name` where there is none (and for a controlled shutdown always under the latter); clients
under the name of the listener that they came to the cluster by. So the controller is listed under each name that
brokers have, either at an address for each, or at the one address that it has: then under every name that stands for the
protocol that is spoken there, whatever brokers there are.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from controller_core.model.metadata import Broker, Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerListeners:
    """Where the controller is reached, and by which listener it reaches the brokers."""

    endpoints: tuple[Endpoint, ...]
    """At least one, as brokers are sent them. The first has the name of the brokers' inter-broker listener."""
    control_plane: str | None = None
    """The listener of brokers that control requests go to; None: the one between brokers."""
    clients: str | None = None
    """Where all names share one address: the listener whose addresses its clients are sent; None: the one between
    brokers."""

    @property
    def inter_broker(self) -> str:
        return self.endpoints[0].listener

    @property
    def links(self) -> str:
        """The listener that the controller's own requests to brokers go to."""
        return self.control_plane or self.inter_broker

    @property
    def is_shared(self) -> bool:
        """Whether one address serves all names."""
        return len(self.endpoints) == 1

    def shown_at(self, listener: str) -> str:
        """The listener whose addresses are sent to clients that came to the socket of this one."""
        return self.clients or listener

    def endpoint(self, listener: str) -> Endpoint | None:
        """Where clients of a listener find the controller; None where they do not."""
        if self.is_shared:
            return replace(self.endpoints[0], listener=listener)
        return next((endpoint for endpoint in self.endpoints if endpoint.listener == listener), None)

    def listed(self, brokers: Iterable[Broker]) -> tuple[Endpoint, ...]:
        """The endpoints that these brokers are sent."""
        if not self.is_shared:
            return self.endpoints
        (own,) = self.endpoints
        names = {
            endpoint.listener
            for broker in brokers
            for endpoint in broker.endpoints
            if endpoint.security_protocol == own.security_protocol
        }
        return (own, *(replace(own, listener=name) for name in sorted(names - {own.listener})))

    def unserved(self, brokers: Iterable[Broker]) -> Mapping[str, str]:
        """The listeners of brokers under which the controller is not found, each with what to change."""
        brokers = list(brokers)
        found = {endpoint.listener: endpoint.security_protocol for endpoint in self.listed(brokers)}
        return {
            endpoint.listener: self._remedy(endpoint, found.get(endpoint.listener))
            for broker in brokers
            for endpoint in broker.endpoints
            if found.get(endpoint.listener) != endpoint.security_protocol
        }

    def unknown(self, brokers: Iterable[Broker]) -> Sequence[str]:
        """The names in the settings that none of these brokers has a listener of."""
        had = {endpoint.listener for broker in brokers for endpoint in broker.endpoints}
        named = [*(endpoint.listener for endpoint in self.endpoints), self.control_plane, self.clients]
        return [name for name in dict.fromkeys(named) if name is not None and name not in had]

    def _remedy(self, endpoint: Endpoint, ours: str | None) -> str:
        """`ours`: the protocol of the controller's listener of that name, where it has one."""
        name, protocol = endpoint.listener, endpoint.security_protocol
        if ours is not None:
            return (
                f"it speaks {protocol}, and the controller {ours} under that name: say {name}:{protocol} in "
                "listener.security.protocol.map of --properties"
            )
        remedy = (
            f"add --listen {name}://HOST:PORT, with {name}:{protocol} in listener.security.protocol.map of --properties"
        )
        if self.is_shared:
            own = self.endpoints[0].security_protocol
            return f"it speaks {protocol}, and one --listen alone serves all listeners of its own protocol, {own}: {remedy}"
        return remedy
