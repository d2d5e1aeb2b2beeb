"""Ids and epochs as types of their own, so that one is never passed for another.

Kafka uses plain integers for nearly all of them. Taking a broker epoch (the czxid of a registration) for a leader epoch
is exactly the mistake that fencing exists to catch; the type checker catches it earlier.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple, NewType
from uuid import UUID

BrokerId = NewType("BrokerId", int)
TopicName = NewType("TopicName", str)
TopicId = NewType("TopicId", UUID)
PartitionId = NewType("PartitionId", int)

ControllerEpoch = NewType("ControllerEpoch", int)
"""The value in `/controller_epoch`. It rises by one with every new controller."""
BrokerEpoch = NewType("BrokerEpoch", int)
"""The czxid of a broker's registration: a broker that bounced has a larger one (KIP-380)."""
LeaderEpoch = NewType("LeaderEpoch", int)
"""Rises with every decision that the replicas of a partition must apply."""
PartitionEpoch = NewType("PartitionEpoch", int)
"""The znode version of a partition's state. It rises with every write."""
TopicVersion = NewType("TopicVersion", int)
"""The version of a topic's assignment or configuration: of its znode, or, without ZooKeeper, the end of the metadata log
at which its last change was seen."""

NO_LEADER: Final = BrokerId(-1)
LEADER_DURING_DELETE: Final = BrokerId(-2)
INITIAL_LEADER_EPOCH: Final = LeaderEpoch(0)
NO_EPOCH: Final = LeaderEpoch(-1)
UNTOLD_BROKER_EPOCH: Final = BrokerEpoch(-1)
UNTOLD_CONTROLLER_EPOCH: Final = ControllerEpoch(-1)
UNTOLD_PARTITION_EPOCH: Final = PartitionEpoch(-1)
"""An epoch that the source of the information did not give: brokers without ZooKeeper give none of these three."""
UNTOLD_TOPIC_VERSION: Final = TopicVersion(-2)
"""A version that the source did not give. ZooKeeper refuses each write that requires it; -1 would allow each."""
EPOCH_DURING_DELETE: Final = LeaderEpoch(-2)


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: TopicName
    partition: PartitionId

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def group_by_topic(partitions: Iterable[TopicPartition]) -> Iterator[tuple[TopicName, tuple[TopicPartition, ...]]]:
    """Yield each topic with its partitions, both sorted."""
    for topic, of_topic in groupby(sorted(partitions), key=attrgetter("topic")):
        yield topic, tuple(of_topic)


class PartitionReplica(NamedTuple):
    """One replica: a partition on a broker. There is at most one per broker (seed 004)."""

    topic_partition: TopicPartition
    broker: BrokerId

    def __str__(self) -> str:
        return f"{self.topic_partition}@{self.broker}"
