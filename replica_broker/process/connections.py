"""What a broker's process is connected by, of either design: its session with ZooKeeper, and its listeners."""

from typing import Final

from controller_core.process.settings import InvalidSettings
from controller_core.wire.listener.listener import Acceptor, Listener, ListenerLimits
from controller_core.zk.kazoo.session import KazooSession
from replica_broker.process.settings import BrokerProcessSettings
from replica_broker.serving.served import RULES, Served

MOST_REQUEST_BYTES: Final = 100 * 1024 * 1024
"""Kafka's `socket.request.max.bytes`."""


def listening(settings: BrokerProcessSettings, served: Served) -> Listener:
    """What listens at each address, and answers as the settings' listener there."""
    acceptors = [
        Acceptor(host=bind.host, port=bind.port, apis=served.apis(bind.listener), relay_targets=None)
        for bind in settings.binds
    ]
    return Listener(acceptors, limits=ListenerLimits(max_own_request_bytes=MOST_REQUEST_BYTES), rules=RULES)


async def connected(settings: BrokerProcessSettings) -> KazooSession:
    """A session with ZooKeeper, as the settings say. Raises `InvalidSettings` and `ZooKeeperUnreachable`."""
    try:
        return await KazooSession.connect(
            settings.zookeeper,
            session_timeout_ms=settings.zookeeper_session_timeout_ms,
            connect_timeout_ms=settings.zookeeper_timeout_ms,
        )
    except ValueError as error:
        raise InvalidSettings(f"--zookeeper: {error}") from error
