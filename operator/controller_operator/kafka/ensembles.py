"""The security of clusters with ZooKeeper: properties files, each for the servers and the chroot that it names.

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
from controller_operator.resources.cluster_address import AtZooKeeper

_CONNECT: Final = "zookeeper.connect"
_DEFAULT_PORT: Final = "2181"


@dataclass(frozen=True, slots=True)
class _Name:
    """A cluster, as a connect string names it."""

    servers: frozenset[str]
    chroot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """The content of a file when it was last read."""

    name: _Name
    zookeeper: ZkSecurity
    listener: BrokerListener


class Ensembles:
    """The security of each ensemble, by the present content of the files."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._said: dict[Path, _Said] = {}

    def check(self) -> None:
        """Raise `InvalidProperties` for a file that is unusable, names no servers, or names the cluster of another
        file."""
        for file in self._files:
            if self._read(file) is None and not read_properties(file).get(BOOTSTRAP):
                raise InvalidProperties(
                    f"{file} has no {_CONNECT}: name the servers that may get its credentials, or the brokers of a cluster "
                    f"without ZooKeeper by {BOOTSTRAP}"
                )
        for said in tuple(self._said.values()):
            self._find(said.name)

    def check_brokers(self) -> None:
        """Raise `InvalidProperties` for unusable credentials for brokers."""
        for file in self._files:
            said = self._read(file)
            if said is not None and said.listener.security is not None:
                said.listener.security()

    def security_of(self, connect: str) -> ZkSecurity:
        """Return the security of a cluster by its connect string, regardless of the order of servers.

        Raises `InvalidProperties` if a file is unusable, or if several files may be meant."""
        for file in self._files:
            self._read(file)
        said = self._find(_parse_name(connect))
        return said.zookeeper if said is not None else NO_ZK_SECURITY

    def listener_of(self, connect: str) -> BrokerListener:
        """Return the listener of a cluster's brokers, by the file at the last connection to the ensemble. Credentials
        are read again for each connection."""
        try:
            said = self._find(_parse_name(connect))
        except InvalidProperties:
            return ANY_PLAINTEXT
        return said.listener if said is not None else ANY_PLAINTEXT

    def _find(self, name: _Name) -> _Said | None:
        """Return the content of the file for a cluster: the one that names its servers and chroot; if there is none, the
        one that names its servers. Raises `InvalidProperties` if there are several."""
        found = {file: said for file, said in self._said.items() if name.servers <= said.name.servers}
        whole = {file: said for file, said in found.items() if said.name.chroot == name.chroot}
        meant = whole or found
        if len(meant) > 1:
            which = f"and the chroot /{name.chroot}" if whole else f"and none names the chroot /{name.chroot}"
            raise InvalidProperties(
                f"{' and '.join(map(str, meant))} name the same servers in {_CONNECT}, {which}: name each cluster by its "
                "servers and its chroot in one file"
            )
        return next(iter(meant.values()), None)

    def _read(self, file: Path) -> _Said | None:
        """Read a file. Return None if it names no ensemble."""
        properties = read_properties(file)
        if not properties.get(_CONNECT):
            self._said.pop(file, None)
            return None
        self._said[file] = said = _Said(
            name=_parse_name(properties[_CONNECT]),
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


def _parse_name(connect: str) -> _Name:
    hosts = (host.strip().lower() for host in connect.partition("/")[0].split(","))
    servers = frozenset(host if _has_port(host) else f"{host}:{_DEFAULT_PORT}" for host in hosts)
    return _Name(servers, AtZooKeeper(connect).chroot)


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]
