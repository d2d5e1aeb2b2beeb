"""Snapshots for tests of the commands around the planner."""

from collections.abc import Mapping
from typing import Final

from controller_core.client.loads.arrays import make_load_snapshot
from controller_core.client.loads.cluster_loads import BrokerLoad, ClusterLoads, PartitionLoad
from controller_core.model.ids import BrokerId, TopicPartition
from controller_planner.loads import LoadSnapshot
from simulation.cluster.names import tp

GIB: Final = 1 << 30
RACKS: Final[Mapping[int, str | None]] = {1: "a", 2: "b", 3: "c", 4: "a"}


def make_partition(*replicas: int, size: int | None = GIB, rate: float | None = 1000.0) -> PartitionLoad:
    """Return a partition that all of its replicas are in sync for, led by the first."""
    brokers = tuple(map(BrokerId, replicas))
    return PartitionLoad(
        replicas=brokers, isr=brokers, leader=brokers[0], size_bytes=size, in_bytes_per_second=rate, min_isr=2
    )


def make_loads(
    partitions: Mapping[TopicPartition, PartitionLoad] | None = None, racks: Mapping[int, str | None] = RACKS
) -> ClusterLoads:
    """Return loads of four brokers in three racks, of which the last is empty, unless told otherwise."""
    found = partitions or {tp("orders", number): make_partition(1, 2, 3) for number in range(6)}
    return ClusterLoads(
        cluster_id="prod",
        taken_at_s=1_700_000_000.0,
        brokers=tuple(BrokerLoad(id=BrokerId(each), rack=rack, disk_bytes=100 * GIB) for each, rack in racks.items()),
        partitions=found,
    )


def make_snapshot(
    partitions: Mapping[TopicPartition, PartitionLoad] | None = None, racks: Mapping[int, str | None] = RACKS
) -> LoadSnapshot:
    """Return the arrays of `make_loads`."""
    return make_load_snapshot(make_loads(partitions, racks))
