"""The security of ZooKeeper ensembles: properties files, each for the servers that it names.

A KafkaCluster contains the address of its ZooKeeper, and anybody who may write a KafkaCluster could name a server of
their own. So the file of the operator's owner decides who gets its credentials: the servers in its `zookeeper.connect`,
and the brokers that have registered with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.wire.connections.broker_properties import PLAINTEXT, BrokerProperties, SecuredBrokers
from controller_core.zk.secured.properties import NO_ZK_SECURITY, ZkSecurity, parse_zk_security
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT, BrokerListener
from controller_operator.kafka.client_files import BOOTSTRAP

_CONNECT: Final = "zookeeper.connect"
_DEFAULT_PORT: Final = "2181"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """The content of a file when it was last read."""

    servers: frozenset[str]
    zookeeper: ZkSecurity
    listener: BrokerListener


class Ensembles:
    """The security of each ensemble, by the present content of the files."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._said: dict[Path, _Said] = {}

    def check(self) -> None:
        """Raise `InvalidProperties` for a file that is unusable or names no servers."""
        for file in self._files:
            if self._read(file) is None and not read_properties(file).get(BOOTSTRAP):
                raise InvalidProperties(
                    f"{file} has no {_CONNECT}: name the servers that may get its credentials, or the brokers of a cluster "
                    f"without ZooKeeper by {BOOTSTRAP}"
                )

    def check_brokers(self) -> None:
        """Raise `InvalidProperties` for unusable credentials for brokers."""
        for file in self._files:
            said = self._read(file)
            if said is not None and said.listener.security is not None:
                said.listener.security()

    def security_of(self, connect: str) -> ZkSecurity:
        """Return the security of an ensemble by its connect string, regardless of a chroot and the order of servers.

        Raises `InvalidProperties` if a file that must be read is unusable."""
        servers = _servers(connect)
        for file in self._files:
            said = self._read(file)
            if said is not None and servers <= said.servers:
                return said.zookeeper
        return NO_ZK_SECURITY

    def listener_of(self, connect: str) -> BrokerListener:
        """Return the listener of an ensemble's brokers, by the file at the last connection to the ensemble. Credentials
        are read again for each connection."""
        servers = _servers(connect)
        said = (self._said[file] for file in self._files if file in self._said)
        return next((each.listener for each in said if servers <= each.servers), ANY_PLAINTEXT)

    def _read(self, file: Path) -> _Said | None:
        """Read a file. Return None if it names no ensemble."""
        properties = read_properties(file)
        if not properties.get(_CONNECT):
            self._said.pop(file, None)
            return None
        self._said[file] = said = _Said(
            servers=_servers(properties[_CONNECT]),
            zookeeper=parse_zk_security(properties, file.parent),
            listener=_listener(BrokerProperties(properties, file.parent), file),
        )
        return said


def _listener(properties: BrokerProperties, file: Path) -> BrokerListener:
    """Return the listener between brokers, or any plaintext one if that one is open. Raises `InvalidProperties`."""
    name, protocol = properties.between_brokers.upper(), properties.protocol_between_brokers
    if protocol == PLAINTEXT:
        return ANY_PLAINTEXT
    return BrokerListener(name=name, protocol=protocol, security=SecuredBrokers(file).source(name, protocol))


def _servers(connect: str) -> frozenset[str]:
    hosts = (host.strip().lower() for host in connect.partition("/")[0].split(","))
    return frozenset(host if _has_port(host) else f"{host}:{_DEFAULT_PORT}" for host in hosts)


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]
