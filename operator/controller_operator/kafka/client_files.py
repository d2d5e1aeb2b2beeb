"""The security of clusters without ZooKeeper: files with a client's properties.

A KafkaCluster contains the addresses of its brokers, and anybody who may write a KafkaCluster could name a server of
their own. So the file of the operator's owner decides who gets its credentials: a KafkaCluster all of whose
bootstrapServers are in the file's `bootstrap.servers`, and the brokers that these servers name.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.wire.connections.broker_properties import PLAINTEXT
from controller_core.wire.connections.client_properties import ClientSecurity
from controller_core.wire.connections.security import Security
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT, BrokerListener
from controller_operator.resources.cluster_address import AtBrokers

BOOTSTRAP: Final = "bootstrap.servers"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """The content of a file when it was last read."""

    servers: frozenset[str]
    """Empty if the file is not about a cluster without ZooKeeper."""
    security: ClientSecurity
    changed_at_ns: int


class ClientFiles:
    """The listeners of each cluster's brokers, by the present files. A file that became unusable keeps its old
    content."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._said: dict[Path, _Said] = {}

    def check(self) -> None:
        """Read all files. Raises `InvalidProperties` for an unusable one."""
        for file in self._files:
            self._read(file).security.make_security(file.parent)

    def listener_of(self, address: AtBrokers) -> BrokerListener:
        """Return the listener of a cluster's brokers, regardless of the order of its servers. Credentials are read
        again for each connection. Raises `InvalidProperties` for a file that was never usable."""
        servers = _servers(address.bootstrap_servers)
        for file in self._files:
            said = self._present(file)
            if servers <= said.servers:
                return self._listener(file, said.security.security_protocol, servers)
        return ANY_PLAINTEXT

    def _listener(self, file: Path, protocol: str, servers: frozenset[str]) -> BrokerListener:
        if protocol == PLAINTEXT:
            return ANY_PLAINTEXT

        def security() -> Security:
            said = self._read(file)
            if not servers <= said.servers or said.security.security_protocol != protocol:
                raise InvalidProperties(f"{file} no longer names these servers, or has another security.protocol")
            return said.security.make_security(file.parent)

        return BrokerListener(protocol=protocol, security=security)

    def _present(self, file: Path) -> _Said:
        known = self._said.get(file)
        if known is None:
            return self._read(file)
        with suppress(OSError, InvalidProperties):
            if file.stat().st_mtime_ns != known.changed_at_ns:
                return self._read(file)
        return known

    def _read(self, file: Path) -> _Said:
        try:
            changed_at_ns = file.stat().st_mtime_ns
        except OSError as error:
            raise InvalidProperties(f"{file} cannot be read: {error}") from error
        properties = read_properties(file)
        is_about_brokers = bool(properties.get(BOOTSTRAP))
        self._said[file] = said = _Said(
            servers=_servers(properties.get(BOOTSTRAP, "")),
            security=_security(file, properties if is_about_brokers else {}),
            changed_at_ns=changed_at_ns,
        )
        return said


def _security(file: Path, properties: Mapping[str, str]) -> ClientSecurity:
    try:
        return ClientSecurity.parse_properties(properties)
    except InvalidProperties as error:
        raise InvalidProperties(f"{file}: {error}") from error


def _servers(bootstrap: str) -> frozenset[str]:
    return frozenset(server.strip().lower() for server in bootstrap.split(",") if server.strip())
