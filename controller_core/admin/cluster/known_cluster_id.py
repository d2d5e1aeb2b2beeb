"""The cluster's id, which clients are told; it is read once, as it never changes.

Brokers write it before they register, so it may come later than the controller.
"""

from controller_core.controller.state.unusable_znodes import UnusableZnodes
from controller_core.wire.listener.owned_api import NoAnswerNow
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ZkError, ZkSession


class KnownClusterId:
    """Reads the id when it is first asked for, and again until it is there."""

    def __init__(self, zk: ZkSession) -> None:
        self._zk = zk
        self._cluster_id: str | None = None

    async def read(self, unusable: UnusableZnodes) -> str | None:
        """None where no broker has ever started, or it makes no sense. Raises `NoAnswerNow` while ZooKeeper is away."""
        if self._cluster_id is None:
            try:
                (node,) = await self._zk.read_many([paths.CLUSTER_ID])
                self._cluster_id = codecs.decode_cluster_id(node.data) if node else None
                unusable.clear(paths.CLUSTER_ID)
            except ZkError as error:
                raise NoAnswerNow(f"the cluster's id could not be read: {error}") from error
            except MalformedZnode as error:
                unusable.report(paths.CLUSTER_ID, "unreadable cluster id, clients are told none", error)
        return self._cluster_id
