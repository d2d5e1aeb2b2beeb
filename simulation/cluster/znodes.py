"""The znodes of a cluster: reads, and the writes of people and tools.

All methods act at once. A controller reacts in its next turn of the event loop.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from controller_core.model.ids import (
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import (
    PartitionState,
    ReplicaAssignment,
    TopicAssignment,
)
from controller_core.zk import codecs, paths
from controller_core.zk.session import Create, CreateMode, Delete, SessionId, SetData, WriteOp
from simulation.cluster.names import ids
from simulation.virtual_time import VirtualClock
from simulation.zookeeper import ObservedZooKeeper

PARENTS: Final = (
    paths.BROKERS, paths.BROKER_IDS, paths.TOPICS, paths.ADMIN, paths.DELETE_TOPICS, paths.ISR_CHANGE_NOTIFICATION,
    paths.CONFIG, paths.TOPIC_CONFIGS, paths.BROKER_CONFIGS, paths.CONFIG_CHANGES, paths.LOG_DIR_EVENT_NOTIFICATION,
)  # fmt: skip
"""The znodes that Kafka's brokers create first."""
_NOBODY: Final = SessionId(0)


class Znodes:
    """A simulated ZooKeeper, with Kafka's parents or empty, and a clock that stands still."""

    def __init__(self, *, empty_zookeeper: bool = False) -> None:
        self.zk = ObservedZooKeeper()
        self.clock = VirtualClock()
        self.zk.tree.now_ms = self.clock.now_ms
        if not empty_zookeeper:
            self.write(*(Create(path=path) for path in PARENTS))

    # Reads

    def data(self, path: str) -> bytes | None:
        node = self.zk.tree.read(path)
        return node.data if node else None

    def exists(self, path: str) -> bool:
        return self.zk.tree.read(path) is not None

    def state(self, partition: TopicPartition) -> PartitionState:
        node = self.zk.tree.read(paths.partition_state(partition))
        assert node is not None, f"{partition} has no state"
        return codecs.decode_partition_state(partition, node)

    def leadership(self, partition: TopicPartition) -> tuple[int, list[int]]:
        """Return the leader and the ISR of ZooKeeper."""
        state = self.state(partition).leader_and_isr
        return state.leader, list(state.isr)

    def topic(self, name: str) -> TopicAssignment:
        data = self.data(paths.topic(TopicName(name)))
        assert data is not None, f"there is no topic {name}"
        return codecs.decode_topic(TopicName(name), data)

    def assignment(self, partition: TopicPartition) -> ReplicaAssignment:
        return self.topic(partition.topic).partitions[partition.partition]

    def list_replicas(self, partition: TopicPartition) -> list[int]:
        return list(self.assignment(partition).replicas)

    # Writes

    def write(self, *ops: WriteOp, owner: SessionId = _NOBODY) -> None:
        self.zk.transact(ops, owner)

    def put(self, path: str, data: bytes) -> None:
        """Create or write a znode."""
        exists = self.zk.tree.read(path) is not None
        self.write(SetData(path=path, data=data) if exists else Create(path=path, data=data))

    def remove(self, path: str) -> None:
        """Delete a znode and everything below it."""
        for below in self._tree(path):
            self.write(Delete(path=below))

    def _tree(self, path: str) -> list[str]:
        below = [sub for child in self.zk.tree.children(path) or () for sub in self._tree(f"{path}/{child}")]
        return [*below, path]

    # Actions of people and tools

    def create_topic(
        self, name: str, *replicas: Sequence[int], has_id: bool = True, config: Mapping[str, str] | None = None
    ) -> TopicId | None:
        """Create a topic with these replicas of its partitions, like a tool."""
        if config is not None:
            self.put(paths.topic_config(TopicName(name)), codecs.encode_config(config))
        topic_id = self.clock.new_topic_id() if has_id else None
        partitions = {PartitionId(number): ReplicaAssignment(replicas=ids(r)) for number, r in enumerate(replicas)}
        content = TopicAssignment(topic_id=topic_id, partitions=partitions)
        self.write(Create(path=paths.topic(TopicName(name)), data=codecs.encode_topic(content)))
        return topic_id

    def add_partitions(self, name: str, *replicas: Sequence[int]) -> None:
        content = self.topic(name)
        first = len(content.partitions)
        added = {
            PartitionId(number): ReplicaAssignment(replicas=ids(r)) for number, r in enumerate(replicas, start=first)
        }
        self.put(
            paths.topic(TopicName(name)),
            codecs.encode_topic(replace(content, partitions={**content.partitions, **added})),
        )

    def remove_topic(self, name: str) -> None:
        """Remove a topic's znodes without asking the controller."""
        self.remove(paths.topic(TopicName(name)))

    def request_deletion(self, name: str) -> None:
        self.write(Create(path=paths.delete_topic(TopicName(name))))

    def request_reassignment(self, targets: Mapping[TopicPartition, Sequence[int]]) -> None:
        self.put(
            paths.REASSIGN_PARTITIONS,
            codecs.encode_reassignment({partition: ids(target) for partition, target in targets.items()}),
        )

    def request_of_partition(self, parent: str, partition: TopicPartition, replicas: Sequence[int] = ()) -> None:
        """Request something for one partition, with its new replicas or empty."""
        topic = f"{parent}/{partition.topic}"
        for path in (parent, topic):
            if not self.exists(path):
                self.write(Create(path=path))
        self.put(paths.partition_request(parent, partition), codecs.encode_replicas(ids(replicas)) if replicas else b"")

    def request_election(self, *partitions: TopicPartition) -> None:
        self.put(paths.PREFERRED_REPLICA_ELECTION, codecs.encode_partitions(partitions))

    def alter_config(self, entity_path: str, config: Mapping[str, str]) -> None:
        """Change a configuration and notify the brokers, like a tool. `entity_path` is for example `topics/orders`."""
        self.put(f"{paths.CONFIG}/{entity_path}", codecs.encode_config(config))
        data, mode = codecs.encode_config_change(entity_path), CreateMode.PERSISTENT_SEQUENTIAL
        self.write(Create(path=paths.CONFIG_CHANGE_PREFIX, data=data, mode=mode))
