"""The loads of a cluster at one moment, and the estimate of a partition's rate from two looks at its offsets."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller_core.model.ids import BrokerId, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoad:
    """A broker: a live one, or one that has replicas and is down."""

    id: BrokerId
    rack: str | None = None
    is_live: bool = True
    takes_replicas: bool = True
    """False if it is down, does not answer, or has cordoned all its log directories (KIP-1066)."""
    disk_bytes: float | None = None
    """Bytes that its logs may have: free ones and those of the logs that it has. None if the broker does not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoad:
    """A partition, and its load. None stands for an unknown number."""

    replicas: tuple[BrokerId, ...]
    """The assigned replicas, the preferred leader first."""
    isr: tuple[BrokerId, ...]
    leader: BrokerId | None
    size_bytes: int | None = None
    """Size of the leader's log. If the leader does not tell it, the largest size that another replica has."""
    in_bytes_per_second: float | None = None
    """Bytes that producers write, as they are on the disk."""
    min_isr: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLoads:
    """The loads of a cluster."""

    cluster_id: str | None
    taken_at_s: float
    """Seconds since 1970, by the clock of this machine."""
    brokers: tuple[BrokerLoad, ...]
    partitions: Mapping[TopicPartition, PartitionLoad]
    moving: frozenset[TopicPartition] = frozenset()
    """Partitions that are being reassigned. Their replicas are those after the move."""
    troubles: tuple[str, ...] = ()
    """A line for each broker or answer that is missing, so that numbers are unknown."""


@dataclass(frozen=True, slots=True)
class Look:
    """One number at a moment of a clock that only goes forward."""

    value: int
    at_s: float


Looks = Mapping[TopicPartition, Look]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenLogs:
    """Everything that was seen of the partitions' logs."""

    first_ends: Looks = field(default_factory=dict)
    last_ends: Looks = field(default_factory=dict)
    starts: Looks = field(default_factory=dict)
    sizes: Mapping[BrokerId, Looks] = field(default_factory=dict)
    """The sizes of all replicas, by broker."""

    def find_size(
        self, partition: TopicPartition, leader: BrokerId | None, replicas: tuple[BrokerId, ...]
    ) -> int | None:
        """Return the size of the leader's log, or the largest size that another replica has; None if all are
        unknown."""
        if leader is not None and (known := self._size_on(partition, leader)) is not None:
            return known.value
        sizes = [known.value for each in replicas if (known := self._size_on(partition, each)) is not None]
        return max(sizes, default=None)

    def estimate_rate(self, partition: TopicPartition, leader: BrokerId | None) -> float | None:
        """Return the bytes that producers wrote per second between the two looks at the end of the log.

        Offsets grow by one for each record, and the log has `size` bytes for the records between its first and its next
        offset. Both are read between the looks, so the next offset of that moment is interpolated. The rate is unknown
        if the offsets went backwards, or if the log is empty and grows."""
        first, last = self.first_ends.get(partition), self.last_ends.get(partition)
        if first is None or last is None or last.at_s <= first.at_s or last.value < first.value:
            return None
        growth, elapsed_s = last.value - first.value, last.at_s - first.at_s
        if growth == 0:
            return 0.0
        size = None if leader is None else self._size_on(partition, leader)
        start = self.starts.get(partition)
        if size is None or start is None:
            return None
        share = min(max((size.at_s - first.at_s) / elapsed_s, 0.0), 1.0)
        records = first.value + growth * share - start.value
        if records <= 0 or size.value <= 0:
            return None
        return growth * size.value / records / elapsed_s

    def _size_on(self, partition: TopicPartition, broker: BrokerId) -> Look | None:
        of_broker = self.sizes.get(broker)
        return None if of_broker is None else of_broker.get(partition)
