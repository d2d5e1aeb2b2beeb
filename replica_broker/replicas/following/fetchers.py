"""The fetchers of this broker: `fetchers_per_leader` for each leader (seed 004, discussion 8)."""

import asyncio
import zlib

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import TopicPartition
from replica_broker.replicas.following.applying import Applying
from replica_broker.replicas.following.fetcher import Fetcher
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.seams import LeaderEndpoint, LeaderLinks
from replica_broker.replicas.settings import ReplicaSettings

_Key = tuple[LeaderEndpoint, int]


class Fetchers:
    """Starts and stops the fetching of partitions."""

    def __init__(self, applying: Applying, links: LeaderLinks, settings: ReplicaSettings, clock: Clock) -> None:
        self._applying = applying
        self._links = links
        self._settings = settings
        self._clock = clock
        self._fetchers: dict[_Key, Fetcher] = {}
        self._keys: dict[TopicPartition, _Key] = {}

    def follow(self, partition: Partition, leader: LeaderEndpoint) -> None:
        """Fetch a partition from this leader only, in its current epoch."""
        self.stop(partition.topic_partition)
        # A hash that is the same in each process; `hash()` is not.
        number = zlib.crc32(str(partition.topic_partition).encode()) % self._settings.fetchers_per_leader
        key = (leader, number)
        if key not in self._fetchers:
            self._fetchers[key] = Fetcher(leader, self._links(leader), self._applying, self._settings, self._clock)
        self._keys[partition.topic_partition] = key
        self._fetchers[key].add(partition)

    def stop(self, topic_partition: TopicPartition) -> None:
        """Run `stop the ReplicaFetcherThread`: nothing more is appended to the partition from a leader."""
        key = self._keys.pop(topic_partition, None)
        if key is not None and key in self._fetchers:
            self._fetchers[key].remove(topic_partition)

    async def close_idle(self) -> None:
        """End the fetchers that have no partition."""
        in_use = set(self._keys.values())
        idle = [self._fetchers.pop(key) for key in list(self._fetchers) if key not in in_use]
        await asyncio.gather(*(fetcher.close() for fetcher in idle))

    async def close(self) -> None:
        """End all fetchers."""
        self._keys.clear()
        await self.close_idle()
