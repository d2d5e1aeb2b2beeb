"""Access rules of the controller's listener: who may send which requests, by the address of the sender.

Without authentication the address is all there is to judge by. Brokers are known: each registers the hosts that it
listens on. Requests that only brokers send are accepted only from their addresses; otherwise anybody could take all
leaders away with one ControlledShutdown for each broker. Requests that change the cluster are accepted from
administrators' networks, and from brokers, which create topics for their clients. Credentials are the key to a secured
cluster, so only this machine may alter them, unless administrators' networks are configured. Everybody may read.

Behind a proxy or source NAT, many callers share one address, and these rules cannot tell them apart. `find_shared`
names the configured networks of which that is known.
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
"""Networks that the internet does not reach, such as those of pods and offices."""

SIDECARS: Final[frozenset[Address]] = frozenset(map(ip_address, ("127.0.0.6", "::6")))
"""The addresses from which Istio's sidecar connects to its pod, whoever its client is. By default they have no rights.
"""


class Need(Enum):
    """The kind of sender that a request needs."""

    NOBODY = auto()
    """Anybody may."""
    BROKER = auto()
    ADMINISTRATOR = auto()
    KEEPER_OF_CREDENTIALS = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """The networks of brokers and administrators, in addition to the addresses of registered brokers."""

    brokers: tuple[Network, ...] = ()
    administrators: tuple[Network, ...] | None = None
    """None: not configured. Then private networks count as administrators', and this machine alone for credentials."""

    def allows(self, need: Need, address: Address, registered: Set[Address]) -> bool:
        """Return True if `need` admits a sender at the address. `registered` are the brokers' addresses."""
        match need:
            case Need.NOBODY:
                return True
            case Need.BROKER:
                return self.is_brokers(address, registered)
            case Need.ADMINISTRATOR:
                return self._is_administrators(address, PRIVATE) or self.is_brokers(address, registered)
            case Need.KEEPER_OF_CREDENTIALS:
                return self._is_administrators(address, LOOPBACK)

    def is_brokers(self, address: Address, registered: Set[Address]) -> bool:
        """Return True if the address belongs to a broker."""
        return address in registered or _is_in(address, self.brokers)

    def find_shared(self, *others: Address) -> tuple[Network, ...]:
        """Return the configured networks that contain addresses which many callers share: a sidecar's, and `others`."""
        return tuple(
            network
            for network in (*(self.administrators or ()), *self.brokers)
            if any(_is_in(address, (network,)) for address in (*SIDECARS, *others))
        )

    def _is_administrators(self, address: Address, by_default: tuple[Network, ...]) -> bool:
        if self.administrators is None:
            return address not in SIDECARS and _is_in(address, by_default)
        return _is_in(address, self.administrators)


def parse_address(text: str) -> Address | None:
    """Parse an address as sockets give it; return None if it is a name. An IPv4-mapped IPv6 address becomes IPv4."""
    try:
        address = ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
