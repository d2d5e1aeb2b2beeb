"""A snapshot as a file of arrays, from which a measured process starts."""

import json
from pathlib import Path
from typing import Final

import numpy as np

from controller_planner.loads import Brokers, LoadSnapshot, Partitions

_OF_BROKERS: Final = (
    "ids",
    "capacity_disk_bytes",
    "capacity_in_bytes_per_second",
    "capacity_out_bytes_per_second",
    "takes_replicas",
    "is_live",
)
_OF_PARTITIONS: Final = (
    "topic",
    "number",
    "replicas",
    "leader",
    "size_bytes",
    "in_bytes_per_second",
    "out_bytes_per_second",
    "min_isr",
    "in_sync",
)


def write_snapshot(snapshot: LoadSnapshot, path: Path) -> None:
    """Write a snapshot to a file whose name ends with `.npz`."""
    names = json.dumps([snapshot.cluster_id, snapshot.taken_at_ms, snapshot.brokers.racks, snapshot.partitions.topics])
    arrays = {f"broker_{name}": getattr(snapshot.brokers, name) for name in _OF_BROKERS}
    arrays |= {f"partition_{name}": getattr(snapshot.partitions, name) for name in _OF_PARTITIONS}
    np.savez(path, names=np.frombuffer(names.encode(), dtype=np.uint8), **arrays)


def read_snapshot(path: Path) -> LoadSnapshot:
    """Return the snapshot of a file."""
    with np.load(path) as arrays:
        cluster_id, taken_at_ms, racks, topics = json.loads(arrays["names"].tobytes())
        return LoadSnapshot(
            cluster_id=cluster_id,
            taken_at_ms=taken_at_ms,
            brokers=Brokers(racks=tuple(racks), **{name: arrays[f"broker_{name}"] for name in _OF_BROKERS}),
            partitions=Partitions(
                topics=tuple(topics), **{name: arrays[f"partition_{name}"] for name in _OF_PARTITIONS}
            ),
        )
