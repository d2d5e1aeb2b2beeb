"""A plan: target replicas for the partitions that change, in batches, with reasons and the loads before and after."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from controller_planner.goals import Goals
from controller_planner.loads import Floats, Ints, LoadSnapshot


class Reason(StrEnum):
    """The cause of a change. A plan stores it as the bit of its position here."""

    DRAIN = "drain"
    RACK = "rack"
    REPLICATION_FACTOR = "replication factor"
    CAPACITY = "capacity"
    REPLICAS = "replicas balance"
    DISK = "disk balance"
    IN = "in balance"
    OUT = "out balance"
    LEADERS = "leaders balance"
    TOPIC_SPREAD = "topic spread"
    NEXT_LEADER = "next leader"
    RELIEF = "relief of a disk"
    EXPOSURE = "failed together"

    @property
    def bit(self) -> int:
        """Return the bit of this reason in `Plan.reasons`."""
        return 1 << list(Reason).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One change of one partition."""

    topic: str
    partition: int
    before: tuple[int, ...]
    """The ids of the brokers, the preferred leader first."""
    after: tuple[int, ...]
    bytes_copied: float | None
    """None: the partition's size is unknown."""
    reasons: tuple[Reason, ...]
    batch: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The changes, one entry of each array for each, by batch, and in a batch the largest first."""

    snapshot: LoadSnapshot
    snapshot_hash: str
    goals: Goals
    partition: Ints
    """Indexes into the snapshot's partitions."""
    after: Ints
    """Indexes into the snapshot's brokers; the form of `Partitions.replicas`."""
    bytes_copied: Floats
    """NaN: unknown."""
    reasons: Ints
    batch: Ints
    """Numbers from 0. A batch may begin when the one before is done: only then is there room on the disks."""
    resources: tuple[str, ...]
    loads_before: Floats
    """Brokers x resources, of the leaders at that time. Unknown loads count as the mean of the known ones. NaN: no load
    of the resource is known."""
    loads_after: Floats
    shares: Floats
    """Brokers x resources: the fair share of each. NaN: the broker or the resource is not balanced."""
    bounds: Floats
    """Brokers x resources: the multiple of the share that the plan aims at. It is the band, or more where one replica,
    or what the racks force on a broker, is more."""
    unknown: tuple[str, ...]
    """Sentences about what nobody measured."""
    left_out: tuple[str, ...]
    """Sentences about what the plan could not do, with the reason."""

    def __len__(self) -> int:
        return len(self.partition)

    @property
    def total_bytes(self) -> float:
        """Return the bytes of all copies of known size."""
        return float(np.nansum(self.bytes_copied))

    @property
    def batches(self) -> int:
        """Return the number of batches."""
        return int(self.batch.max(initial=-1)) + 1

    def iterate_moves(self) -> Iterator[Move]:
        """Yield each change with names and ids."""
        partitions, ids = self.snapshot.partitions, self.snapshot.brokers.ids
        for at, partition in enumerate(self.partition):
            before, after = partitions.replicas[partition], self.after[at]
            copied = float(self.bytes_copied[at])
            yield Move(
                topic=partitions.topics[partitions.topic[partition]],
                partition=int(partitions.number[partition]),
                before=tuple(ids[before[before >= 0]].tolist()),
                after=tuple(ids[after[after >= 0]].tolist()),
                bytes_copied=None if np.isnan(copied) else copied,
                reasons=tuple(reason for reason in Reason if int(self.reasons[at]) & reason.bit),
                batch=int(self.batch[at]),
            )

    def compute_hash(self) -> str:
        """Return the SHA-256 of the snapshot's hash, the goals and the changes."""
        digest = hashlib.sha256(repr((self.snapshot_hash, self.goals, self.after.shape)).encode())
        if self.goals.failed_together:
            digest.update(repr(self.goals.failed_together).encode())
        if self.goals.racks is not None:
            digest.update(repr(self.goals.racks).encode())
        for array in (self.partition, self.after, self.bytes_copied, self.reasons, self.batch):
            digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes())
        return digest.hexdigest()
