"""A life of a cluster: topics are created, the broker that leads a third is killed, and comes back."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

from bench.designs.clusters import DesignCluster, topics_of
from bench.designs.counting.leaderships import NOBODY, Design, Leadership
from bench.designs.measuring import Measuring
from bench.setup.jvm import BenchZooKeeper
from devcluster.clusters.run_folder import RunFolder

ZOOKEEPER_HEAP_MB: Final = 768
_KILLED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a cluster, and the deadline of each scenario."""

    partitions: int
    in_topic: int
    replication_factor: int
    deadline_s: float


def measure(folder: RunFolder, design: Design, sizes: Sizes) -> Iterator[dict[str, Any]]:
    """Yield the counts of each scenario. Raises `ConditionTimeoutError` and `StartError`."""
    topics = topics_of(sizes.partitions, in_topic=sizes.in_topic, replication_factor=sizes.replication_factor)
    with (
        BenchZooKeeper(folder, heap_mb=ZOOKEEPER_HEAP_MB) as zookeeper,
        DesignCluster(folder, zookeeper, design) as cluster,
    ):
        measuring = Measuring(zookeeper, cluster, deadline_s=sizes.deadline_s)
        found = measuring.leaderships.partitions

        def are_all_in_sync() -> bool:
            return len(found) == sizes.partitions and all(
                each.leader != NOBODY and len(each.in_sync) == sizes.replication_factor for each in found.values()
            )

        yield measuring.scenario("creation", lambda: cluster.create(topics), are_all_in_sync)
        killed = cluster.brokers[_KILLED]
        led = [each for each in found.values() if each.leader == _KILLED]
        yield measuring.scenario("death", killed.kill, lambda: _are_replaced(led))
        yield measuring.scenario("return", killed.spawn, are_all_in_sync)


def _are_replaced(led: Collection[Leadership]) -> bool:
    """Return True if each partition of the killed broker has another leader, which has written its ISR."""
    return all(each.leader not in (_KILLED, NOBODY) and _KILLED not in each.in_sync for each in led)
