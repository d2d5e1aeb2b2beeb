"""The cluster id for answers to clients. It never changes, so it is read once.

Brokers write it before they register, so it may appear after the controller has started.
"""

from controller_core.controller.state.unusable_znodes import UnusableZnodes
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkError, ZkSession


class KnownClusterId:
    """Reads the id when it is first requested, and again until it exists."""

    def __init__(self, zk: ZkSession) -> None:
        self._zk = zk
        self._cluster_id: str | None = None

    async def read(self, unusable: UnusableZnodes) -> str | None:
        """Return the id, or None if no broker has ever started or it is malformed. Raises `NoAnswerNow` without
        ZooKeeper."""
        if self._cluster_id is None:
            try:
                (node,) = await self._zk.read_many([paths.CLUSTER_ID])
                self._cluster_id = codecs.decode_cluster_id(node.data) if node else None
                unusable.clear(paths.CLUSTER_ID)
            except ZkError as error:
                raise NoAnswerNow(f"the cluster's id could not be read: {error}") from error
            except MalformedZnode as error:
                unusable.report(paths.CLUSTER_ID, "unreadable cluster id: clients get none", error)
        return self._cluster_id
