"""The finalized features of the cluster, and the compatibility of this broker with them (KIP-584, seed 001).

`/feature` is read before the registration and watched afterwards. A broker that does not support a finalized level does
not register, or leaves the cluster. The features' epoch is the version of the znode.

Like a stock broker, this one takes an unreadable znode for no finalized features.
"""

import structlog

from controller_core.model.features import FinalizedFeatures, find_incompatibilities
from controller_core.model.metadata import Broker
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Watch, ZkNode, ZkSession
from replica_broker.membership.looking import keep_looking
from replica_broker.membership.node import Node

log = structlog.get_logger()


class IncompatibleFeatures(Exception):
    """The cluster has finalized a feature that this broker does not support. Fatal: it must leave the cluster."""

    def __init__(self, broker: Broker, features: FinalizedFeatures, reasons: list[str]) -> None:
        super().__init__(
            f"broker {broker.id} is not compatible with the finalized features of the cluster (epoch {features.epoch}): "
            f"{'; '.join(reasons)}: upgrade it, or declare with --feature that it supports them"
        )


class Features:
    """Checks the finalized features and stores them for clients."""

    def __init__(self, zk: ZkSession, node: Node, broker: Broker) -> None:
        self._zk = zk
        self._node = node
        self._broker = broker

    async def check(self) -> None:
        """Read and check the finalized features. Raises `IncompatibleFeatures`, and the errors of ZooKeeper."""
        (znode,) = await self._zk.read_many([paths.FEATURE])
        self._take(znode)

    async def keep(self) -> None:
        """Check every change, until cancelled. Raises `IncompatibleFeatures`."""
        await keep_looking(self._zk, self._look)

    async def _look(self, watch: Watch) -> None:
        (znode,) = await self._zk.read_watched([paths.FEATURE], lambda _: watch)
        self._take(znode)

    def _take(self, znode: ZkNode | None) -> None:
        features = _decode(znode)
        reasons = find_incompatibilities(self._broker, features.features) if features else []
        if features is not None and reasons:
            raise IncompatibleFeatures(self._broker, features, reasons)
        if features != self._node.finalized_features and features is not None:
            log.info("finalized features", features=dict(features.features), epoch=features.epoch)
        self._node.finalized_features = features


def _decode(znode: ZkNode | None) -> FinalizedFeatures | None:
    if znode is None:
        return None
    try:
        content = codecs.decode_features(znode.data)
    except MalformedZnode as error:
        log.error("unreadable finalized features, clients get none", error=str(error))
        return None
    return FinalizedFeatures(features=content.features, epoch=znode.version) if content.is_enabled else None
