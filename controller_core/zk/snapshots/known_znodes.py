"""The decoded znodes of a cluster, and the snapshots made from them.

The relevant znodes follow from others: a topic's name leads to its assignment and configuration, and the assignment to
the states of its partitions. So taking in one znode may return further paths to read (`take`). A missing path is taken
in like any other, as None.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, ControllerEpoch, PartitionId, TopicName, TopicPartition, TopicVersion
from controller_core.model.metadata import (
    Broker,
    PartitionState,
    PreferredElectionPlan,
    ReassignmentPlan,
    TopicAssignment,
)
from controller_core.model.snapshot import (
    Controller,
    ControllerKind,
    KnownTopics,
    Snapshot,
    TopicSnapshot,
    read_min_isr,
)
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode, ProcessZnode
from controller_core.zk.session import ZkNode

LISTS: Final = (paths.BROKER_IDS, paths.TOPICS, paths.DELETE_TOPICS)
"""The znodes whose children are watched."""
TREES: Final = (paths.TOPICS, paths.TOPIC_CONFIGS)
"""The znodes that are watched together with everything below them, if ZooKeeper supports it."""
SINGLES: Final = (
    paths.CLUSTER_ID,
    paths.CONTROLLER,
    paths.CONTROLLER_EPOCH,
    paths.REASSIGN_PARTITIONS,
    paths.PREFERRED_REPLICA_ELECTION,
    paths.FEATURE,
    paths.broker_config(None),
)
"""The znodes that always have their own watch."""
_REQUESTS: Final = (paths.REASSIGN_PARTITIONS, paths.PREFERRED_REPLICA_ELECTION)
"""A malformed request still blocks others, so it counts as a request without entries."""


class KnownZnodes:
    """The decoded znodes of one cluster."""

    def __init__(self) -> None:
        self._cluster_id: str | None = None
        self._process: ProcessZnode | None = None
        """The own znode of the controller, if it is Kontroller."""
        self._controller: BrokerId | None = None
        self._controller_epoch = ControllerEpoch(0)
        self._reassignment: ReassignmentPlan | None = None
        self._preferred_election: PreferredElectionPlan | None = None
        self._features: FinalizedFeatures | None = None
        self._default_min_isr = 1
        self._brokers: dict[BrokerId, Broker | None] = {}
        self._deleting: frozenset[TopicName] = frozenset()
        self._assignments: dict[TopicName, tuple[TopicAssignment, TopicVersion] | None] = {}
        self._configs: dict[TopicName, tuple[dict[str, str], TopicVersion]] = {}
        self._states: dict[TopicName, dict[PartitionId, PartitionState]] = {}
        self._topics = KnownTopics()
        self._stale: set[TopicName] = set()
        """The topics that may differ from the last snapshot."""
        self._snapshots = 0
        self._malformed: dict[str, str] = {}

    def take_children(self, path: str, names: Iterable[str]) -> list[str]:
        """Take in the children of one of `LISTS`. Return the paths to read now."""
        if path == paths.BROKER_IDS:
            ids = map(paths.parse_broker_id, names)
            return self._take_broker_ids({broker_id for broker_id in ids if broker_id is not None})
        topics = [TopicName(name) for name in names]
        if path == paths.TOPICS:
            return self._take_topics(topics)
        self._deleting = frozenset(topics)
        return []

    def take(self, path: str, node: ZkNode | None) -> list[str]:
        """Take in a znode or its absence. Return the paths to read now."""
        self._malformed.pop(path, None)
        topic = _topic_of(path)
        if node is None and topic is not None and path == paths.topic(topic):
            self._forget_topic(topic)
            return []
        try:
            return self._take(path, node)
        except MalformedZnode as error:
            self._malformed[path] = error.reason
            return [] if path in _REQUESTS else self._take(path, None)

    def is_wanted(self, path: str) -> bool:
        """Return True if the path still matters. The path of a topic or broker that is gone does not."""
        topic = _topic_of(path)
        if path.startswith(f"{paths.PROCESSES}/"):
            return self._controller is not None and path == paths.process(self._controller)
        if topic is None:
            broker = path.removeprefix(f"{paths.BROKER_IDS}/")
            return broker == path or BrokerId(int(broker)) in self._brokers
        if topic not in self._assignments:
            return False
        partition = _partition_of(path)
        return partition is None or partition in self._partitions(topic)

    def take_change(self, path: str) -> list[str]:
        """Take in that a znode of one of `TREES` was created, written or deleted. Return the paths to read now.

        Most znodes that a controller creates for a topic do not matter."""
        topic = _topic_of(path)
        if topic is None:
            return []
        if path == paths.topic(topic) and topic not in self._assignments:
            return self._add_topics([topic])
        is_read = path in (paths.topic(topic), paths.topic_config(topic)) or _partition_of(path) is not None
        return [path] if is_read and self.is_wanted(path) else []

    def list_paths_below(self, tree: str) -> list[str]:
        """Return all relevant paths of one of `TREES`, without itself."""
        if tree == paths.TOPIC_CONFIGS:
            return [paths.topic_config(topic) for topic in self._assignments]
        states = (TopicPartition(topic, number) for topic in self._assignments for number in self._partitions(topic))
        return [*map(paths.topic, self._assignments), *map(paths.partition_state, states)]

    def take_snapshot(self) -> Snapshot:
        """Return everything that was taken in so far as a snapshot. Topics without changes are the same objects as in
        the last one."""
        changed = self._renew_topics()
        self._snapshots += 1
        controller = self._present_controller()
        is_ours = controller is not None and controller.kind is ControllerKind.KONTROLLER
        ignored = self._controller if is_ours else None
        brokers = {
            broker_id: broker for broker_id, broker in sorted(self._brokers.items()) if broker and broker_id != ignored
        }
        return Snapshot(
            version=self._snapshots,
            cluster_id=self._cluster_id,
            controller=controller,
            brokers=brokers,
            topics=self._topics.copy(),
            reassignment=self._reassignment,
            preferred_election=self._preferred_election,
            deleting=self._deleting,
            features=self._features,
            malformed=dict(self._malformed),
            changed=changed,
            known_counts=self._topics.counts,
            known_holders=self._topics.holders,
            unsupported_brokers=self._process.unsupported_brokers if self._process else (),
            is_controller_id_taken=ignored in self._brokers,
        )

    def _take_broker_ids(self, ids: set[BrokerId]) -> list[str]:
        for gone in set(self._brokers) - ids:
            del self._brokers[gone]
        new = sorted(ids - set(self._brokers))
        self._brokers.update(dict.fromkeys(new))
        return [paths.broker(broker_id) for broker_id in new]

    def _take_topics(self, topics: list[TopicName]) -> list[str]:
        for gone in set(self._assignments) - set(topics):
            self._forget_topic(gone)
        return self._add_topics([topic for topic in topics if topic not in self._assignments])

    def _add_topics(self, new: list[TopicName]) -> list[str]:
        self._assignments.update(dict.fromkeys(new))
        return [path for topic in new for path in (paths.topic(topic), paths.topic_config(topic))]

    def _forget_topic(self, topic: TopicName) -> None:
        self._assignments.pop(topic, None)
        self._configs.pop(topic, None)
        self._malformed.pop(paths.topic_config(topic), None)
        self._states.pop(topic, None)
        self._stale.add(topic)

    def _take(self, path: str, node: ZkNode | None) -> list[str]:
        topic = _topic_of(path)
        if topic is not None:
            return self._take_of_topic(topic, path, node) if topic in self._assignments else []
        if path.startswith(f"{paths.BROKER_IDS}/"):
            broker_id = BrokerId(int(path.removeprefix(f"{paths.BROKER_IDS}/")))
            if broker_id in self._brokers:
                self._brokers[broker_id] = codecs.decode_broker(broker_id, node) if node else None
            return []
        if path.startswith(f"{paths.PROCESSES}/"):
            self._take_process(path, node)
        elif path == paths.FEATURE:
            self._take_features(node)
        elif path == paths.CONTROLLER:
            return self._take_controller(node)
        else:
            self._take_single(path, node.data if node else None)
        return []

    def _take_single(self, path: str, data: bytes | None) -> None:
        if path == paths.CONTROLLER_EPOCH:
            self._controller_epoch = codecs.decode_controller_epoch(data) if data else ControllerEpoch(0)
        elif path == paths.REASSIGN_PARTITIONS:
            self._take_reassignment(data)
        elif path == paths.PREFERRED_REPLICA_ELECTION:
            self._take_preferred_election(data)
        elif path == paths.CLUSTER_ID:
            self._cluster_id = codecs.decode_cluster_id(data) if data else None
        else:
            self._take_broker_defaults(codecs.decode_config(data, path) if data else {})

    def _take_controller(self, node: ZkNode | None) -> list[str]:
        """Take in the controller. If it is Kontroller, return its own znode with more about it."""
        self._process = None
        self._controller = codecs.decode_controller(node.data) if node else None
        return [] if self._controller is None else [paths.process(self._controller)]

    def _take_process(self, path: str, node: ZkNode | None) -> None:
        self._process = None
        if node is not None and self.is_wanted(path):
            self._process = codecs.decode_process(path, node.data)

    def _take_features(self, node: ZkNode | None) -> None:
        self._features = None
        if node is not None:
            znode = codecs.decode_features(node.data)
            self._features = FinalizedFeatures(features=znode.features if znode.is_enabled else {}, epoch=node.version)

    def _take_reassignment(self, data: bytes | None) -> None:
        self._reassignment = None
        if data is not None:
            self._reassignment = ReassignmentPlan(partitions={})
            self._reassignment = codecs.decode_reassignment(data)

    def _take_preferred_election(self, data: bytes | None) -> None:
        self._preferred_election = None
        if data is not None:
            self._preferred_election = PreferredElectionPlan(partitions=())
            self._preferred_election = codecs.decode_preferred_election(data)

    def _take_broker_defaults(self, config: dict[str, str]) -> None:
        default = read_min_isr(config, 1)
        if default != self._default_min_isr:
            self._default_min_isr = default
            self._stale.update(self._assignments)

    def _take_of_topic(self, topic: TopicName, path: str, node: ZkNode | None) -> list[str]:
        self._stale.add(topic)
        partition = _partition_of(path)
        if partition is not None:
            self._take_state(TopicPartition(topic, partition), node)
            return []
        if path == paths.topic_config(topic):
            self._configs.pop(topic, None)
            if node is not None:
                self._configs[topic] = codecs.decode_config(node.data, path), TopicVersion(node.version)
            return []
        known = set(self._partitions(topic))
        self._assignments[topic] = (
            (codecs.decode_whole_topic(topic, node.data), TopicVersion(node.version)) if node else None
        )
        new = [number for number in self._partitions(topic) if number not in known]
        return [paths.partition_state(TopicPartition(topic, number)) for number in new]

    def _take_state(self, partition: TopicPartition, node: ZkNode | None) -> None:
        states = self._states.setdefault(partition.topic, {})
        states.pop(partition.partition, None)
        if node is not None:
            states[partition.partition] = codecs.decode_partition_state(partition, node)

    def _partitions(self, topic: TopicName) -> Iterable[PartitionId]:
        entry = self._assignments.get(topic)
        return entry[0].partitions if entry else ()

    def _renew_topics(self) -> frozenset[TopicName]:
        """Renew the changed topics. Return those that differ from the last snapshot.

        After an outage everything is read again, and hardly any topic differs."""
        changed = frozenset(topic for topic in self._stale if self._renew_topic(topic))
        self._stale.clear()
        return changed

    def _renew_topic(self, topic: TopicName) -> bool:
        entry = self._assignments.get(topic)
        return self._topics.take(topic, self._make_topic(topic, *entry) if entry is not None else None)

    def _make_topic(self, topic: TopicName, assignment: TopicAssignment, version: TopicVersion) -> TopicSnapshot:
        config, config_version = self._configs.get(topic, ({}, None))
        known = self._states.get(topic, {})
        return TopicSnapshot(
            name=topic,
            assignment=assignment,
            version=version,
            config=config,
            config_version=config_version,
            is_config_known=paths.topic_config(topic) not in self._malformed,
            states={number: known[number] for number in assignment.partitions if number in known},
            default_min_isr=self._default_min_isr,
        )

    def _present_controller(self) -> Controller | None:
        if self._controller is None:
            return None
        # A broker may register under Kontroller's id. Then only Kontroller's own znode tells who has the role.
        leads = self._process is not None and self._process.leads_under is not None
        is_broker = self._controller in self._brokers and not leads
        kind = ControllerKind.KAFKA if is_broker else ControllerKind.KONTROLLER
        return Controller(id=self._controller, epoch=self._controller_epoch, kind=kind)


def _topic_of(path: str) -> TopicName | None:
    for parent in (paths.TOPICS, paths.TOPIC_CONFIGS):
        if path.startswith(f"{parent}/"):
            return TopicName(path.removeprefix(f"{parent}/").split("/", 1)[0])
    return None


def _partition_of(path: str) -> PartitionId | None:
    """Return the partition of a state's path; None for any other path, because `state` may be a topic's name."""
    if not path.endswith("/state"):
        return None
    with suppress(ValueError):
        return paths.parse_partition_state(path).partition
    return None
