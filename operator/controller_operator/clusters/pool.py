"""One `Cluster` per address, however many KafkaClusters name it, for as long as one does."""

import asyncio
from collections.abc import Awaitable, Callable

from controller_core.zk.session import ZkSession
from controller_operator.clusters.cluster import Cluster
from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.observation.observation import Observation
from controller_operator.resources.cluster_address import ClusterAddress

Connect = Callable[[str], Awaitable[ZkSession]]
"""Opens a session to a connect string; raises `ZkError` where that fails."""
OpenCluster = Callable[[ClusterAddress], Cluster]
"""Makes what is to be started; nothing is connected with yet."""


class ClusterPool:
    """The clusters, by address. `on_change` is given the address whose observation changed."""

    def __init__(self, open_cluster: OpenCluster, on_change: Callable[[ClusterAddress, Observation], None]) -> None:
        self._open_cluster = open_cluster
        self._on_change = on_change
        self._clusters: dict[ClusterAddress, Cluster] = {}

    def get(self, address: ClusterAddress) -> Cluster:
        """The cluster at an address, observed from the first call on."""
        cluster = self._clusters.get(address)
        if cluster is None:
            cluster = self._open_cluster(address)
            cluster.add_listener(lambda observation: self._on_change(address, observation))
            self._clusters[address] = cluster
            cluster.start()
        return cluster

    def last_view(self, address: ClusterAddress) -> ClusterView | None:
        """What was last seen of a cluster, current or not; None where it is not observed, or nothing was read yet."""
        cluster = self._clusters.get(address)
        return cluster.observation.view if cluster else None

    async def keep_only(self, addresses: set[ClusterAddress]) -> None:
        """Stops to observe clusters that nothing names any more."""
        gone = [self._clusters.pop(address) for address in set(self._clusters) - addresses]
        await asyncio.gather(*(cluster.stop() for cluster in gone))

    async def close(self) -> None:
        """Stops all."""
        await self.keep_only(set())
