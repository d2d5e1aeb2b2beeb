"""How ensembles are reached that want to know who comes: by files of properties, for the servers that they name.

A KafkaCluster says where its ZooKeeper is, and whoever may write one could name a server of his own. So it is the file,
which the operator's owner gives, that says by `zookeeper.connect` who is shown the credentials in it: these servers alone.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from controller_core.security.properties_file import InvalidProperties, read_properties
from controller_core.zk.secured.properties import NO_ZK_SECURITY, ZkSecurity, zk_security_of

_CONNECT: Final = "zookeeper.connect"
_DEFAULT_PORT: Final = "2181"


class Ensembles:
    """The security of each, as the files say it now."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = tuple(files)

    def check(self) -> None:
        """Raises `InvalidProperties` for a file that cannot be used, or that names no servers."""
        for file in self._files:
            _read(file)

    def security_of(self, connect: str) -> ZkSecurity:
        """Of an ensemble by its connect string; the order of its servers, and a chroot, make no difference.

        Raises `InvalidProperties` where a file that would have to be looked into cannot be used."""
        servers = _servers(connect)
        for file in self._files:
            named, security = _read(file)
            if servers <= named:
                return security
        return NO_ZK_SECURITY


def _read(file: Path) -> tuple[frozenset[str], ZkSecurity]:
    properties = read_properties(file)
    if not properties.get(_CONNECT):
        raise InvalidProperties(f"{file} has no {_CONNECT}: name the servers that may see what it says, as brokers do")
    return _servers(properties[_CONNECT]), zk_security_of(properties, file.parent)


def _servers(connect: str) -> frozenset[str]:
    hosts = (host.strip().lower() for host in connect.partition("/")[0].split(","))
    return frozenset(host if _has_port(host) else f"{host}:{_DEFAULT_PORT}" for host in hosts)


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]
