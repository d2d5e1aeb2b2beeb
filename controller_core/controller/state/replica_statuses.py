"""The state of every replica, stored by broker, because most lookups and changes concern all replicas of one broker.

There are several times as many replicas as partitions. Stored by broker, each takes one place in a dictionary and no
object of its own. A new controller sets all replicas of a broker in one step.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.model.transitions import ReplicaStatus


class ReplicaStatuses(Mapping[PartitionReplica, ReplicaStatus]):
    """Replica -> its state. A replica without an entry does not exist."""

    __slots__ = ("_by_broker",)

    def __init__(self) -> None:
        self._by_broker: dict[BrokerId, dict[TopicPartition, ReplicaStatus]] = {}

    def on(self, broker: BrokerId) -> Mapping[TopicPartition, ReplicaStatus]:
        """Return the states of the replicas on a broker, by partition. Read only."""
        return self._by_broker.get(broker, {})

    def set_all(self, broker: BrokerId, partitions: Iterable[TopicPartition], status: ReplicaStatus) -> None:
        """Set the state of many replicas on one broker."""
        self._by_broker.setdefault(broker, {}).update(dict.fromkeys(partitions, status))

    def set(self, replica: PartitionReplica, status: ReplicaStatus) -> None:
        """Set the state of one replica."""
        partition, broker = replica
        self._by_broker.setdefault(broker, {})[partition] = status

    def remove(self, replica: PartitionReplica) -> None:
        """Remove a replica, if it exists."""
        partition, broker = replica
        self._by_broker.get(broker, {}).pop(partition, None)

    def get(self, replica: PartitionReplica, default: Any = None) -> Any:
        partition, broker = replica
        statuses = self._by_broker.get(broker)
        return default if statuses is None else statuses.get(partition, default)

    def __getitem__(self, replica: PartitionReplica) -> ReplicaStatus:
        partition, broker = replica
        try:
            return self._by_broker[broker][partition]
        except KeyError:
            raise KeyError(replica) from None

    def __contains__(self, replica: object) -> bool:
        if not isinstance(replica, tuple):
            return False
        partition, broker = replica
        return partition in self._by_broker.get(broker, ())

    def __iter__(self) -> Iterator[PartitionReplica]:
        for broker, statuses in self._by_broker.items():
            for partition in statuses:
                yield PartitionReplica(partition, broker)

    def __len__(self) -> int:
        return sum(map(len, self._by_broker.values()))
