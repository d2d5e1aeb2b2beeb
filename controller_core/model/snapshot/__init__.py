"""A Kafka cluster as its ZooKeeper or its brokers show it at one moment.

A `Snapshot` is immutable, and every change makes a new one. A topic without changes is the same object in the next
snapshot, and `changed` names the other topics. So nobody has to search thousands of topics for a change, and the counts
of a topic are computed once.
"""

from controller_core.model.snapshot.cluster import (
    WITHOUT_ZOOKEEPER,
    Abilities,
    Controller,
    ControllerKind,
    Snapshot,
)
from controller_core.model.snapshot.topic import (
    Counts,
    PartitionSnapshot,
    TopicSnapshot,
    count_partitions,
    read_min_isr,
    sum_counts,
)
from controller_core.model.snapshot.topics import KnownTopics

__all__ = [
    "WITHOUT_ZOOKEEPER",
    "Abilities",
    "Controller",
    "ControllerKind",
    "Counts",
    "KnownTopics",
    "PartitionSnapshot",
    "Snapshot",
    "TopicSnapshot",
    "count_partitions",
    "read_min_isr",
    "sum_counts",
]
