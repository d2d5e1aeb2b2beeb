"""One `Cluster` per address, shared by all KafkaClusters that name it, as long as one does."""

import asyncio
from collections.abc import Awaitable, Callable

from controller_core.model.snapshot import Snapshot
from controller_core.zk.session import ZkSession
from controller_operator.clusters.cluster import Cluster
from controller_operator.observation.observation import Observation
from controller_operator.resources.cluster_address import ClusterAddress

Connect = Callable[[str], Awaitable[ZkSession]]
"""Opens a session to a connect string. Raises `ZkError` on failure."""
OpenCluster = Callable[[ClusterAddress], Cluster]
"""Makes a cluster, which is not connected before its start."""


class ClusterPool:
    """The clusters, by address. `on_change` gets the address whose observation changed."""

    def __init__(self, open_cluster: OpenCluster, on_change: Callable[[ClusterAddress, Observation], None]) -> None:
        self._open_cluster = open_cluster
        self._on_change = on_change
        self._clusters: dict[ClusterAddress, Cluster] = {}

    def get(self, address: ClusterAddress) -> Cluster:
        """Return the cluster at an address, which is observed from the first call on."""
        cluster = self._clusters.get(address)
        if cluster is None:
            cluster = self._open_cluster(address)
            cluster.add_listener(lambda observation: self._on_change(address, observation))
            self._clusters[address] = cluster
            cluster.start()
        return cluster

    def find_last_view(self, address: ClusterAddress) -> Snapshot | None:
        """Return the last view of a cluster, current or not; None if it is not observed, or was not read yet."""
        cluster = self._clusters.get(address)
        return cluster.observation.view if cluster else None

    async def keep_only(self, addresses: set[ClusterAddress]) -> None:
        """Stop the observation of clusters that nothing names any longer."""
        gone = [self._clusters.pop(address) for address in set(self._clusters) - addresses]
        await asyncio.gather(*(cluster.stop() for cluster in gone))

    async def close(self) -> None:
        """Stop all observations."""
        await self.keep_only(set())
