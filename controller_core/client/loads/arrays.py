"""Turns the loads of a cluster into the arrays of the planner."""

from collections.abc import Set
from typing import Final

import numpy as np

from controller_core.client.loads.cluster_loads import ClusterLoads, PartitionLoad
from controller_core.model.ids import BrokerId
from controller_planner.loads import NO_BROKER, Brokers, LoadSnapshot, Partitions

_UNKNOWN: Final = float("nan")
_DEFAULT_MIN_ISR: Final = 1
_NO_BROKERS: Final[Set[BrokerId]] = frozenset()


def make_load_snapshot(loads: ClusterLoads, closed: Set[BrokerId] = _NO_BROKERS) -> LoadSnapshot:
    """Return the arrays. `closed`: brokers that take no replicas, besides those that the cluster shows as such.

    The bytes that consumers read are unknown. Raises `InvalidSnapshot`."""
    index = {broker.id: at for at, broker in enumerate(loads.brokers)}
    names = sorted({partition.topic for partition in loads.partitions})
    topic_index = {name: at for at, name in enumerate(names)}
    ordered = sorted(loads.partitions.items())
    width = max((len(each.replicas) for _, each in ordered), default=1)
    replicas = np.full((len(ordered), width), NO_BROKER, dtype=np.int32)
    in_sync = np.zeros((len(ordered), width), dtype=np.bool_)
    for row, (_, each) in enumerate(ordered):
        replicas[row, : len(each.replicas)] = [index[broker] for broker in each.replicas]
        in_sync[row, : len(each.replicas)] = [broker in each.isr for broker in each.replicas]
    return LoadSnapshot(
        cluster_id=loads.cluster_id or "",
        taken_at_ms=round(loads.taken_at_s * 1000),
        brokers=Brokers(
            ids=np.array([each.id for each in loads.brokers], dtype=np.int32),
            racks=tuple(each.rack or None for each in loads.brokers),
            capacity_disk_bytes=np.array([each.disk_bytes or _UNKNOWN for each in loads.brokers]),
            capacity_in_bytes_per_second=np.full(len(loads.brokers), _UNKNOWN),
            capacity_out_bytes_per_second=np.full(len(loads.brokers), _UNKNOWN),
            takes_replicas=np.array(
                [each.takes_replicas and each.id not in closed for each in loads.brokers], np.bool_
            ),
            is_live=np.array([each.is_live for each in loads.brokers], np.bool_),
        ),
        partitions=Partitions(
            topics=tuple(names),
            topic=np.array([topic_index[partition.topic] for partition, _ in ordered], dtype=np.int32),
            number=np.array([partition.partition for partition, _ in ordered], dtype=np.int32),
            replicas=replicas,
            leader=np.array([_find_leader(each, index) for _, each in ordered], dtype=np.int32),
            size_bytes=_make_floats([each.size_bytes for _, each in ordered]),
            in_bytes_per_second=_make_floats([each.in_bytes_per_second for _, each in ordered]),
            out_bytes_per_second=np.full(len(ordered), _UNKNOWN),
            min_isr=np.array([max(each.min_isr or 0, _DEFAULT_MIN_ISR) for _, each in ordered], dtype=np.int32),
            in_sync=in_sync,
        ),
    )


def _find_leader(each: PartitionLoad, index: dict[BrokerId, int]) -> int:
    """Return the leader's index. The leader of a moving partition may have no replica after the move."""
    return index[each.leader] if each.leader is not None and each.leader in each.replicas else NO_BROKER


def _make_floats(values: list[int | None] | list[float | None]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array([_UNKNOWN if value is None else value for value in values], dtype=np.float64)
