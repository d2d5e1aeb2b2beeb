"""How ensembles are reached that want to know who comes: by files of properties, for the servers that they name.

A KafkaCluster says where its ZooKeeper is, and whoever may write one could name a server of his own. So it is the file,
which the operator's owner gives, that says by `zookeeper.connect` who is shown the credentials in it: these servers alone,
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
    """What a file said when it was read last."""

    servers: frozenset[str]
    zookeeper: ZkSecurity
    listener: BrokerListener


class Ensembles:
    """The security of each, as the files say it now."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)
        self._said: dict[Path, _Said] = {}

    def check(self) -> None:
        """Raises `InvalidProperties` for a file that cannot be used, or that names no servers."""
        for file in self._files:
            if self._read(file) is None and not read_properties(file).get(BOOTSTRAP):
                raise InvalidProperties(
                    f"{file} has no {_CONNECT}: name the servers that may see what it says, as brokers do, or by "
                    f"{BOOTSTRAP}, as clients do, those of a cluster without ZooKeeper"
                )

    def check_brokers(self) -> None:
        """The same for what is shown to brokers."""
        for file in self._files:
            said = self._read(file)
            if said is not None and said.listener.security is not None:
                said.listener.security()

    def security_of(self, connect: str) -> ZkSecurity:
        """Of an ensemble by its connect string; the order of its servers, and a chroot, make no difference.

        Raises `InvalidProperties` where a file that would have to be looked into cannot be used."""
        servers = _servers(connect)
        for file in self._files:
            said = self._read(file)
            if said is not None and servers <= said.servers:
                return said.zookeeper
        return NO_ZK_SECURITY

    def listener_of(self, connect: str) -> BrokerListener:
        """Where the brokers of an ensemble are asked, as the file said when the ensemble was connected with last. How is
        read again for each connection."""
        servers = _servers(connect)
        said = (self._said[file] for file in self._files if file in self._said)
        return next((each.listener for each in said if servers <= each.servers), ANY_PLAINTEXT)

    def _read(self, file: Path) -> _Said | None:
        """None of a file that names no ensemble."""
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
    """That between brokers, where it is not open to everybody. Raises `InvalidProperties`."""
    name, protocol = properties.between_brokers.upper(), properties.protocol_between_brokers
    if protocol == PLAINTEXT:
        return ANY_PLAINTEXT
    return BrokerListener(name=name, protocol=protocol, security=SecuredBrokers(file).source(name, protocol))


def _servers(connect: str) -> frozenset[str]:
    hosts = (host.strip().lower() for host in connect.partition("/")[0].split(","))
    return frozenset(host if _has_port(host) else f"{host}:{_DEFAULT_PORT}" for host in hosts)


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]
