"""Topics that are marked for deletion. No request returns them, so they are read from ZooKeeper, as the controller
does."""

from typing import Final

from controller_core.client.cluster import Call
from controller_core.client.errors import Unreachable
from controller_core.client.properties import ClientProperties
from controller_core.model.ids import TopicName
from controller_core.zk import paths
from controller_core.zk.kazoo.session import KazooSession
from controller_core.zk.session import ZkError

_SESSION_TIMEOUT_MS: Final = 10_000


async def read_marked_for_deletion(call: Call, properties: ClientProperties) -> tuple[TopicName, ...] | None:
    """Return the topics by name; None without `zookeeper.connect`. Raises `Unreachable`."""
    zookeeper_connect = properties.zookeeper_connect
    if zookeeper_connect is None:
        return None
    try:
        session = await KazooSession.connect(
            zookeeper_connect,
            makes_chroot=False,
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            connect_timeout_ms=min(call.left_ms, _SESSION_TIMEOUT_MS),
            security=lambda: properties.zookeeper_security,
        )
        try:
            (names,) = await session.children_many([paths.DELETE_TOPICS])
        finally:
            await session.close()
    except (ZkError, ValueError) as error:
        message = f"ZooKeeper at {zookeeper_connect} does not return the topics that are marked for deletion: {error}"
        raise Unreachable(message) from error
    return tuple(sorted(map(TopicName, names or ())))
