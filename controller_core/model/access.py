"""Who may ask what of the controller, by the address that a request comes from.

Nobody is authenticated on the controller's listener, so the address is all there is to judge by. Brokers are known:
each registers the hosts that it listens on. Requests that only brokers send are taken from their addresses alone: one
ControlledShutdown for each broker, from anybody, would take all leaders away. Requests that change the cluster are
taken from administrators' networks, and from brokers, which create topics for their clients. Credentials are the key
to a secured cluster, so they are altered from this machine alone unless administrators' networks were named.
Questions are answered to all.
"""

from collections.abc import Iterable, Set
from dataclasses import dataclass
from enum import Enum, auto
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

LOCALHOST: Final[Address] = ip_address("127.0.0.1")
LOOPBACK: Final[tuple[Network, ...]] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))

PRIVATE: Final[tuple[Network, ...]] = (
    *LOOPBACK,
    *map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10")),
    *map(ip_network, ("fc00::/7", "fe80::/10")),
)
"""Networks that are not reached from the internet, as those of pods and offices are."""


class Need(Enum):
    """Who must be asking."""

    NOBODY = auto()
    """Anybody may."""
    BROKER = auto()
    ADMINISTRATOR = auto()
    KEEPER_OF_CREDENTIALS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """Which networks belong to whom, beside the addresses of registered brokers."""

    brokers: tuple[Network, ...] = ()
    administrators: tuple[Network, ...] | None = None
    """None: nobody said. Private networks then, and for credentials this machine."""

    def allows(self, need: Need, address: Address, registered: Set[Address]) -> bool:
        """Whether who asks from the address is whom it needs; `registered` are the brokers' addresses."""
        match need:
            case Need.NOBODY:
                return True
            case Need.BROKER:
                return self.is_brokers(address, registered)
            case Need.ADMINISTRATOR:
                administrators = PRIVATE if self.administrators is None else self.administrators
                return _is_in(address, administrators) or self.is_brokers(address, registered)
            case Need.KEEPER_OF_CREDENTIALS:
                return _is_in(address, LOOPBACK if self.administrators is None else self.administrators)

    def is_brokers(self, address: Address, registered: Set[Address]) -> bool:
        """Whether the address is a broker's."""
        return address in registered or _is_in(address, self.brokers)


def parse_address(text: str) -> Address | None:
    """An address as sockets give it; None where it is a name. IPv4 is IPv4, also on a socket of IPv6."""
    try:
        address = ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
