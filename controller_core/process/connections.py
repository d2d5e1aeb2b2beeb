"""The connections of a process, from its settings: to ZooKeeper, to brokers, and at its own listeners with ACLs."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from controller_core.admin.authorizing.authorizer_properties import read_authorizer_rules
from controller_core.model.authorization.decision import AuthorizerRules
from controller_core.model.metadata import Endpoint
from controller_core.process.settings import InvalidSettings
from controller_core.security.properties_file import InvalidProperties
from controller_core.wire.authentication.exchanges import ScramCredentials
from controller_core.wire.authentication.secured_listener import SecuredListener
from controller_core.wire.connections.broker_properties import PLAINTEXT, SecuredBrokers
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES
from controller_core.zk.secured.properties import make_zk_security_source


class ZooKeeperSettings(Protocol):
    """The settings of any process that works with ZooKeeper."""

    @property
    def zookeeper(self) -> str: ...

    @property
    def zookeeper_session_timeout_ms(self) -> int: ...

    @property
    def zookeeper_timeout_ms(self) -> int: ...

    @property
    def properties(self) -> Path | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperOptions:
    """The settings of a command that works with ZooKeeper. It waits less long than a server process."""

    zookeeper: str
    properties: Path | None = None
    zookeeper_session_timeout_ms: int = 10_000
    zookeeper_timeout_ms: int = 15_000


async def open_zookeeper_session(
    settings: ZooKeeperSettings,
    *,
    jute_maxbuffer_bytes: int = DEFAULT_JUTE_MAXBUFFER_BYTES,
    makes_chroot: bool = True,
) -> KazooSession:
    """Open a session. `jute_maxbuffer_bytes`: as set on the servers.

    Raises `InvalidSettings`, `ZooKeeperUnreachable`, `AccessRefused`."""
    try:
        return await KazooSession.connect(
            settings.zookeeper,
            session_timeout_ms=settings.zookeeper_session_timeout_ms,
            connect_timeout_ms=settings.zookeeper_timeout_ms,
            jute_maxbuffer_bytes=jute_maxbuffer_bytes,
            makes_chroot=makes_chroot,
            security=make_zk_security_source(settings.properties),
        )
    except InvalidProperties as error:
        raise InvalidSettings(f"--properties: {error}") from error
    except ValueError as error:
        raise InvalidSettings(f"--zookeeper: {error}") from error


def read_acl_rules(file: Path | None) -> AuthorizerRules | None:
    """Return the authorizer's rules in a file of properties, or None without ACLs. Raises `InvalidSettings`."""
    try:
        return read_authorizer_rules(file)
    except InvalidProperties as error:
        raise InvalidSettings(f"--properties: {error}") from error


def open_secured_brokers(file: Path | None, listener: str | None = None) -> SecuredBrokers:
    """Return the security of connections to brokers, at a listener, or at the inter-broker listener.

    The file of properties is checked now, and read again for each connection. Raises `InvalidSettings`."""
    try:
        return SecuredBrokers.open(file, listener)
    except InvalidProperties as error:
        raise InvalidSettings(f"--properties: {error}") from error


def make_secured_listeners(
    file: Path | None, binds: Iterable[Endpoint], credentials: ScramCredentials
) -> dict[str, SecuredListener]:
    """Return the process's own listeners that are not PLAINTEXT by name, secured by a file of properties.

    Raises `InvalidSettings`."""
    secured = [bind for bind in binds if bind.security_protocol != PLAINTEXT]
    if not secured:
        return {}
    assert file is not None, "settings have refused such a listener without a file"
    try:
        return {
            bind.listener: SecuredListener(file, bind.listener, bind.security_protocol, credentials) for bind in secured
        }
    except InvalidProperties as error:
        raise InvalidSettings(f"--properties: {error}") from error
