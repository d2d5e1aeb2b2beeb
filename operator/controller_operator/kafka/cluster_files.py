"""The properties files of clusters: each has the security settings of the cluster that it names.

A KafkaCluster contains the address of its ZooKeeper or its brokers, and anybody who may write a KafkaCluster could name
a server of their own. So the files of the operator's owner decide who gets their credentials. With ZooKeeper, these are
the servers in `zookeeper.connect`, and the brokers that have registered with them. Without ZooKeeper, these are the
servers in `bootstrap.servers`, and the brokers that they name.

An unusable file affects only its own cluster, which gets the error at each new connection. A file that cannot be read
is still for the cluster that it has named before.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.wire.connections.broker_properties import PLAINTEXT, BrokerProperties
from controller_core.wire.connections.client_properties import ClientSecurity
from controller_core.wire.connections.security import Security
from controller_core.zk.secured.properties import NO_ZK_SECURITY, ZkSecurity, parse_zk_security
from controller_operator.kafka.broker_listeners import ANY_PLAINTEXT, BrokerListener
from controller_operator.resources.cluster_address import AtBrokers, AtZooKeeper, ClusterAddress

_CONNECT: Final = "zookeeper.connect"
_BOOTSTRAP: Final = "bootstrap.servers"
_DEFAULT_ZOOKEEPER_PORT: Final = "2181"


@dataclass(frozen=True, slots=True)
class _Name:
    """A cluster, as a file or a KafkaCluster names it."""

    property: str
    """The property for such a name."""
    servers: frozenset[str]
    chroot: str

    @classmethod
    def parse(cls, address: ClusterAddress) -> "_Name":
        match address:
            case AtZooKeeper(connect=connect):
                servers = frozenset(map(_add_port, connect.partition("/")[0].lower().split(",")))
                return cls(_CONNECT, servers, address.chroot)
            case AtBrokers(bootstrap_servers=bootstrap):
                named = (server.strip().lower().rpartition("://")[2] for server in bootstrap.split(","))
                return cls(_BOOTSTRAP, frozenset(filter(None, named)), address.chroot)

    def has_servers_of(self, other: "_Name") -> bool:
        return self.property == other.property and other.servers <= self.servers


@dataclass(frozen=True, slots=True)
class _Route:
    """The listener of brokers that a file describes."""

    listener: str | None
    protocol: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    """The content of a file when it could be read."""

    file: Path
    changed_at_ns: int
    properties: Mapping[str, str]
    names: tuple[_Name, ...]
    routes: Mapping[str, _Route | str]
    """The listener for each property that names a cluster: the last usable one, or the error if there was none."""

    def find_route(self, named_by: str) -> _Route:
        route = self.routes[named_by]
        if isinstance(route, str):
            raise InvalidProperties(route)
        return route

    def parse_route(self, named_by: str) -> _Route:
        return _parse_route(self.file, self.properties, named_by)

    def parse_zk_security(self) -> ZkSecurity:
        with _name_in_errors(self.file):
            return parse_zk_security(self.properties, self.file.parent)

    def parse_broker_security(self, route: _Route) -> Security:
        with _name_in_errors(self.file):
            if route.listener is not None:
                brokers = BrokerProperties(self.properties, self.file.parent)
                return brokers.read_listener_security(route.listener, route.protocol).security()
            said = ClientSecurity.parse_properties(self.properties)
            if said.security_protocol != route.protocol:
                raise InvalidProperties(f"security.protocol is no longer {route.protocol}")
            return said.make_security(self.file.parent)

    def find_faults(self) -> Iterator[InvalidProperties]:
        """Return the errors in the settings of each cluster that the file names."""
        for name in self.names:
            brokers = partial(self._parse_brokers, name.property)
            for parse in (self.parse_zk_security, brokers) if name.property == _CONNECT else (brokers,):
                try:
                    parse()
                except InvalidProperties as error:
                    yield error

    def _parse_brokers(self, named_by: str) -> Security:
        return self.parse_broker_security(self.parse_route(named_by))


class ClusterFiles:
    """The security of each cluster, by the present content of the files."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(map(_ClusterFile, dict.fromkeys(files)))

    def find_faults(self) -> list[InvalidProperties]:
        """Return the errors of unusable files. Raises `InvalidProperties` if several files name the same cluster."""
        faults: list[InvalidProperties] = []
        for file in self._files:
            try:
                faults += file.read().find_faults()
            except InvalidProperties as error:
                faults.append(error)
        for file in self._files:
            for name in file.last.names if file.last is not None else ():
                self._find(name)
        return faults

    def security_of(self, connect: str) -> ZkSecurity:
        """Return the security of a cluster's ZooKeeper by its connect string, regardless of the order of servers.

        Raises `InvalidProperties` if the cluster's file is unusable, or if it is in doubt which file is meant."""
        content = self._read(_Name.parse(AtZooKeeper(connect)))
        if content is None:
            return NO_ZK_SECURITY
        content.parse_route(_CONNECT)  # a file that is wrong about brokers is reported before they are needed
        return content.parse_zk_security()

    def listener_of(self, address: ClusterAddress) -> BrokerListener:
        """Return the listener of a cluster's brokers, regardless of the order of servers. Its security reads the
        credentials again for each connection, and raises `InvalidProperties` if the cluster's file is unusable."""
        name = _Name.parse(address)
        try:
            file = self._find(name)
            route = file.read_if_changed().find_route(name.property) if file is not None else None
        except InvalidProperties as error:
            return BrokerListener(security=partial(_refuse, str(error)))
        if route is None or route.protocol == PLAINTEXT:
            return ANY_PLAINTEXT
        return BrokerListener(
            name=route.listener, protocol=route.protocol, security=partial(self._read_broker_security, name, route)
        )

    def _read_broker_security(self, name: _Name, route: _Route) -> Security:
        content = self._read(name)
        if content is None:
            raise InvalidProperties(f"the file of this cluster no longer names these servers in {name.property}")
        return content.parse_broker_security(route)

    def _read(self, name: _Name) -> _Content | None:
        """Read the file of a cluster; None if it has none. Raises `InvalidProperties`."""
        file = self._find(name)
        if file is None:
            return None
        content = file.read()
        if self._find(name) is not file:
            raise InvalidProperties(f"{file.path} no longer names these servers in {name.property}")
        return content

    def _find(self, name: _Name) -> "_ClusterFile | None":
        """Return the file of a cluster: the one that names its servers and chroot; if there is none, the one that names
        its servers. Raises `InvalidProperties` if it is in doubt which file is meant."""
        unknown: InvalidProperties | None = None
        found: dict[_ClusterFile, _Name] = {}
        for file in self._files:
            try:
                names = file.read_if_changed().names
            except InvalidProperties as error:
                unknown = error
                continue
            found.update((file, each) for each in names if each.has_servers_of(name))
        whole = [file for file, each in found.items() if each.chroot == name.chroot]
        if unknown is not None and not whole:
            raise InvalidProperties(f"no usable file is for this cluster, and an unusable one may be: {unknown}")
        meant = whole or list(found)
        if len(meant) > 1:
            files = " and ".join(str(file.path) for file in meant)
            chroot = f", and {'' if whole else 'none names '}the chroot /{name.chroot}" if name.chroot else ""
            raise InvalidProperties(
                f"{files} name the same servers in {name.property}{chroot}: name each cluster in one file"
            )
        return meant[0] if meant else None


class _ClusterFile:
    """One file, and its last content that could be read."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.last: _Content | None = None

    def read_if_changed(self) -> _Content:
        """Return the present content, or the last one if the file cannot be read. Raises `InvalidProperties` if it never
        could."""
        if self.last is None:
            return self.read()
        with suppress(OSError, InvalidProperties):
            if self.path.stat().st_mtime_ns != self.last.changed_at_ns:
                return self.read()
        return self.last

    def read(self) -> _Content:
        """Read the file. Raises `InvalidProperties` if it cannot be read, or names no cluster."""
        try:
            changed_at_ns = self.path.stat().st_mtime_ns
        except OSError as error:
            raise InvalidProperties(f"{self.path} cannot be read: {error}") from error
        properties = read_properties(self.path)
        connect, bootstrap = properties.get(_CONNECT), properties.get(_BOOTSTRAP)
        addresses = (AtZooKeeper(connect) if connect else None, AtBrokers(bootstrap) if bootstrap else None)
        names = tuple(_Name.parse(each) for each in addresses if each is not None)
        if not names:
            raise InvalidProperties(
                f"{self.path} names no cluster: set {_CONNECT} to the servers that may get its credentials, or "
                f"{_BOOTSTRAP} for a cluster without ZooKeeper"
            )
        routes = dict(self.last.routes) if self.last is not None else {}
        for named_by in (name.property for name in names):
            try:
                routes[named_by] = _parse_route(self.path, properties, named_by)
            except InvalidProperties as error:
                if not isinstance(routes.get(named_by), _Route):
                    routes[named_by] = str(error)
        self.last = _Content(
            file=self.path, changed_at_ns=changed_at_ns, properties=properties, names=names, routes=routes
        )
        return self.last


def _parse_route(file: Path, properties: Mapping[str, str], named_by: str) -> _Route:
    with _name_in_errors(file):
        if named_by == _BOOTSTRAP:
            return _Route(None, ClientSecurity.parse_properties(properties).security_protocol)
        brokers = BrokerProperties(properties, file.parent)
        return _Route(brokers.between_brokers.upper(), brokers.protocol_between_brokers)


@contextmanager
def _name_in_errors(file: Path) -> Iterator[None]:
    """Name the file in errors."""
    try:
        yield
    except InvalidProperties as error:
        raise InvalidProperties(f"{file}: {error}") from error


def _refuse(error: str) -> Security:
    raise InvalidProperties(error)


def _add_port(host: str) -> str:
    host = host.strip()
    return host if ":" in host.rpartition("]")[2] else f"{host}:{_DEFAULT_ZOOKEEPER_PORT}"
