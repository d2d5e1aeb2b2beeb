"""The state that results from the records of a metadata log, and immutable copies of it.

It knows more than a journal: fenced brokers, and topics by id. Unchanged parts of a copy are the same objects as in the
copy before. Three values that journals take from ZooKeeper are not in a metadata log, or only until a snapshot replaces
it: the version of features is 0, the controller epoch of a state is -1, and a number made of a topic's id tells topics
with the same name apart."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from controller_core.journal import configs
from controller_core.journal.batches import StateCopy, TopicCopy
from controller_core.journal.observed import Touched
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import (
    UNTOLD_CONTROLLER_EPOCH,
    BrokerId,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import (
    Broker,
    LeaderAndIsr,
    LeaderRecoveryState,
    PartitionState,
    ReplicaAssignment,
)
from controller_core.recorder.looker import derive_creation
from controller_core.recorder.metadata_log import records
from controller_core.recorder.metadata_log.batches import LogUnreadable
from controller_core.recorder.metadata_log.records import MetadataRecord

K = TypeVar("K")

KRAFT_VERSION: Final = "kraft.version"
_OF_TOPIC: Final = 2
_OF_BROKER: Final = 4


class MetadataImage:
    """The state of one cluster at an offset of its log."""

    def __init__(self) -> None:
        self._copy = StateCopy()
        self.touched: Touched | None = None
        """The parts in which the last copy may differ from the one before."""
        self._brokers: dict[BrokerId, _Registration] = {}
        self._names: dict[TopicId, TopicName] = {}
        self._topics: dict[TopicName, _Topic] = {}
        self._states: dict[TopicPartition, PartitionState] = {}
        self._features: dict[str, int] = {}
        self._topic_configs: dict[TopicName, dict[str, str]] = {}
        self._broker_configs: dict[BrokerId | None, dict[str, str]] = {}
        self._changed: set[str] = set()
        """The parts of the state that changed since the last copy."""
        self._changed_topics: set[TopicName] = set()
        self._changed_partitions: set[TopicPartition] = set()

    @property
    def has_changed(self) -> bool:
        """True if the next copy differs from the last one."""
        return bool(self._changed)

    @property
    def shutting_down(self) -> frozenset[BrokerId]:
        """Brokers that have asked for a controlled shutdown."""
        return frozenset(number for number, each in self._brokers.items() if each.is_shutting_down)

    def apply(self, record: MetadataRecord) -> None:
        """Apply a record. Raises `LogUnreadable` if it contradicts the earlier ones."""
        match record:
            case records.RegisterBroker():
                self._brokers[record.broker] = _Registration(
                    _make_broker(record), is_fenced=record.is_fenced, is_shutting_down=record.is_shutting_down
                )
                self._changed.add("brokers")
            case records.UnregisterBroker():
                self._brokers.pop(record.broker, None)
                self._changed.add("brokers")
            case records.BrokerChange():
                self._change_broker(record)
            case records.Topic():
                self._add_topic(record)
            case records.RemoveTopic():
                self._remove_topic(record.topic_id)
            case records.Partition():
                self._set(
                    self._find_name(record.topic_id), record.partition, _make_assignment(record), _make_state(record)
                )
            case records.PartitionChange():
                self._change(record)
            case records.Config():
                self._configure(record)
            case records.FeatureLevel():
                self.finalize(record.name, record.level)
            case _:
                raise LogUnreadable(f"the record {record} of the metadata log is out of place")

    def finalize(self, feature: str, level: int) -> None:
        """Set the level of a feature. 0 removes it."""
        if level:
            self._features[feature] = level
        else:
            self._features.pop(feature, None)
        self._changed.add("features")

    def copy(self) -> StateCopy:
        """Return a copy of the present state."""
        parts: Mapping[str, Callable[[], object]] = {
            "brokers": self._list_live_brokers,
            "topics": self._copy_topics,
            "states": self._states.copy,
            "features": lambda: FinalizedFeatures(features=dict(self._features), epoch=0) if self._features else None,
            "topic_configs": lambda: {name: dict(config) for name, config in self._topic_configs.items()},
            "broker_configs": lambda: {broker: dict(config) for broker, config in self._broker_configs.items()},
        }
        changed = {name: parts[name]() for name in self._changed}
        self.touched = Touched(
            since=self._copy,
            topics=frozenset(self._changed_topics),
            partitions=frozenset(self._changed_partitions),
        )
        if changed:
            self._copy = replace(self._copy, **changed)  # type: ignore[arg-type] # each part has its own type
        self._changed.clear()
        self._changed_topics.clear()
        self._changed_partitions.clear()
        return self._copy

    def _list_live_brokers(self) -> dict[BrokerId, Broker]:
        return {number: each.broker for number, each in self._brokers.items() if not each.is_fenced}

    def _copy_topics(self) -> dict[TopicName, TopicCopy]:
        copied = dict(self._copy.topics)
        for name in self._changed_topics:
            topic = self._topics.get(name)
            if topic is None:
                copied.pop(name, None)
            else:
                copied[name] = TopicCopy(
                    topic_id=topic.topic_id,
                    czxid=derive_creation(topic.topic_id),
                    partitions=dict(sorted(topic.partitions.items())),
                )
        return copied

    def _change_broker(self, record: records.BrokerChange) -> None:
        known = self._brokers.get(record.broker)
        if known is None:
            return
        is_fenced = known.is_fenced if record.is_fenced is None else record.is_fenced
        is_shutting_down = known.is_shutting_down if record.is_shutting_down is None else record.is_shutting_down
        self._brokers[record.broker] = _Registration(known.broker, is_fenced, is_shutting_down)
        if is_fenced != known.is_fenced:
            self._changed.add("brokers")

    def _add_topic(self, record: records.Topic) -> None:
        if record.name in self._topics or record.topic_id in self._names:
            raise LogUnreadable(f"the metadata log creates the topic {record.name} ({record.topic_id}), which exists")
        self._names[record.topic_id] = record.name
        self._topics[record.name] = _Topic(topic_id=record.topic_id, partitions={})
        self._change_topic(record.name)

    def _remove_topic(self, topic_id: TopicId) -> None:
        name = self._find_name(topic_id)
        del self._names[topic_id]
        topic = self._topics.pop(name)
        for partition in topic.partitions:
            self._states.pop(TopicPartition(name, partition), None)
            self._changed_partitions.add(TopicPartition(name, partition))
        self._topic_configs.pop(name, None)
        self._changed |= {"states", "topic_configs"}
        self._change_topic(name)

    def _set(
        self, name: TopicName, partition: PartitionId, assignment: ReplicaAssignment, state: PartitionState
    ) -> None:
        topic = self._topics[name]
        if topic.partitions.get(partition) != assignment:
            topic.partitions[partition] = assignment
            self._change_topic(name)
        key = TopicPartition(name, partition)
        self._states[key] = state
        self._changed_partitions.add(key)
        self._changed.add("states")

    def _change(self, record: records.PartitionChange) -> None:
        name = self._find_name(record.topic_id)
        state = self._states.get(TopicPartition(name, record.partition))
        assignment = self._topics[name].partitions.get(record.partition)
        if state is None or assignment is None:
            raise LogUnreadable(
                f"the metadata log changes partition {record.partition} of {name}, which does not exist"
            )
        self._set(name, record.partition, _change_assignment(assignment, record), _change_state(state, record))

    def _configure(self, record: records.Config) -> None:
        if record.resource_type == _OF_TOPIC and record.name in configs.TOPIC_CONFIGS:
            _set_config(self._topic_configs, TopicName(record.resource), record)
            self._changed.add("topic_configs")
        if record.resource_type == _OF_BROKER and record.name in configs.BROKER_CONFIGS:
            _set_config(self._broker_configs, _parse_broker_id(record.resource), record)
            self._changed.add("broker_configs")

    def _find_name(self, topic_id: TopicId) -> TopicName:
        name = self._names.get(topic_id)
        if name is None:
            raise LogUnreadable(f"the metadata log refers to topic {topic_id}, which does not exist")
        return name

    def _change_topic(self, name: TopicName) -> None:
        self._changed.add("topics")
        self._changed_topics.add(name)


@dataclass(frozen=True, slots=True)
class _Registration:
    broker: Broker
    is_fenced: bool
    is_shutting_down: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Topic:
    topic_id: TopicId
    partitions: dict[PartitionId, ReplicaAssignment]


def _make_broker(record: records.RegisterBroker) -> Broker:
    return Broker(
        id=record.broker,
        epoch=record.epoch,
        endpoints=record.endpoints,
        rack=record.rack,
        features=record.features,
    )


def _make_assignment(record: records.Partition) -> ReplicaAssignment:
    return ReplicaAssignment(replicas=record.replicas, adding=record.adding, removing=record.removing)


def _make_state(record: records.Partition) -> PartitionState:
    return PartitionState(
        leader_and_isr=LeaderAndIsr(
            leader=record.leader,
            isr=record.isr,
            leader_epoch=LeaderEpoch(record.leader_epoch),
            leader_recovery_state=_parse_recovery_state(record.recovery_state),
        ),
        controller_epoch=UNTOLD_CONTROLLER_EPOCH,
        partition_epoch=PartitionEpoch(record.partition_epoch),
    )


def _change_assignment(known: ReplicaAssignment, record: records.PartitionChange) -> ReplicaAssignment:
    if record.replicas is None and record.adding is None and record.removing is None:
        return known
    return ReplicaAssignment(
        replicas=known.replicas if record.replicas is None else record.replicas,
        adding=known.adding if record.adding is None else record.adding,
        removing=known.removing if record.removing is None else record.removing,
    )


def _change_state(known: PartitionState, record: records.PartitionChange) -> PartitionState:
    """Apply a change. Each change is a new version. Naming a leader begins a new epoch, even if it is the same
    leader."""
    decided = known.leader_and_isr
    begins_epoch = record.leader is not None
    return PartitionState(
        leader_and_isr=LeaderAndIsr(
            leader=decided.leader if record.leader is None else record.leader,
            isr=decided.isr if record.isr is None else record.isr,
            leader_epoch=LeaderEpoch(decided.leader_epoch + begins_epoch),
            leader_recovery_state=(
                decided.leader_recovery_state
                if record.recovery_state is None
                else _parse_recovery_state(record.recovery_state)
            ),
        ),
        controller_epoch=UNTOLD_CONTROLLER_EPOCH,
        partition_epoch=PartitionEpoch(known.partition_epoch + 1),
    )


def _parse_recovery_state(number: int) -> LeaderRecoveryState:
    try:
        return LeaderRecoveryState(number)
    except ValueError as error:
        raise LogUnreadable(f"a partition of the metadata log has the recovery state {number}") from error


def _parse_broker_id(resource: str) -> BrokerId | None:
    """Parse a broker id; None for the default of all brokers. Controllers accept any number that Java parses, also with
    a sign."""
    if not resource:
        return None
    try:
        return BrokerId(int(resource))
    except ValueError as error:  # also raised for a number with very many digits
        raise LogUnreadable(
            f"the metadata log configures a broker {resource[:20]!r}, which is not a broker id"
        ) from error


def _set_config(known: dict[K, dict[str, str]], key: K, record: records.Config) -> None:
    config = known.setdefault(key, {})
    if record.value is None:
        config.pop(record.name, None)
    else:
        config[record.name] = record.value
    known[key] = dict(sorted(config.items()))
    if not config:
        del known[key]
