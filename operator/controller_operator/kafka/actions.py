"""The actions of a plan on a Kafka cluster, and their writes to ZooKeeper.

Each action is one transaction in the format of Kafka's own tools, so that any controller acts on it. It is conditional
on the versions in the plan's view, or on the absence of the znodes that it creates. If the condition fails, nothing is
written and the outcome is `LOOK_AGAIN`: the next plan is made over the changed cluster. So an action that is repeated,
by a restarted operator or after a lost answer, is done once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import assert_never

from controller_core.model.ids import BrokerId, TopicId, TopicName, TopicPartition, TopicVersion
from controller_core.model.metadata import TopicAssignment
from controller_core.zk import codecs, paths
from controller_core.zk.compare_and_set import put
from controller_core.zk.session import (
    ANY_VERSION,
    Check,
    ConnectionLost,
    Create,
    CreateMode,
    SetData,
    TooLarge,
    TransactionFailed,
    WriteOp,
    ZkNode,
    ZkSession,
    ZkVersion,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    """Creates a topic with its configuration. The assignment is written last, because it wakes the controller."""

    topic: TopicName
    assignment: TopicAssignment
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    """Writes an assignment that has more partitions than before, and otherwise the same."""

    topic: TopicName
    assignment: TopicAssignment
    version: TopicVersion
    present: int = 0
    """Number of partitions that exist already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTopicConfig:
    """Replaces a topic's configuration and notifies the brokers. `version` None: the topic has no configuration yet."""

    topic: TopicName
    config: Mapping[str, str]
    version: TopicVersion | None
    changes: Mapping[str, str | None] = field(default_factory=dict)
    """The keys that change, with their new values; None for keys that return to their defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkTopicForDeletion:
    """Requests a topic's deletion, if it still is the topic with this id."""

    topic: TopicName
    topic_id: TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitReassignment:
    """Requests the reassignment of partitions.

    As a transaction it is Kafka's older way, with one request at a time. It is for clusters whose controller takes no
    such requests (`requests.moves`)."""

    partitions: Mapping[TopicPartition, tuple[BrokerId, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitPreferredElection:
    """Requests the election of preferred leaders. Only one such request can exist at a time."""

    partitions: tuple[TopicPartition, ...]


Action = (
    CreateTopic | AddPartitions | AlterTopicConfig | MarkTopicForDeletion | SubmitReassignment | SubmitPreferredElection
)


class Outcome(Enum):
    """The outcome of an action."""

    DONE = "done"
    LOOK_AGAIN = "look again"
    """The cluster differs from the plan's view, or an answer was lost. Plan again; there is nothing to report."""


async def execute(action: Action, session: ZkSession) -> Outcome:
    """Carry out an action. Raises `TooLarge`, and the `ZkError`s that are no answer to the action itself."""
    ops = await _make_present_operations(action, session)
    if ops is None:
        return Outcome.LOOK_AGAIN
    try:
        await session.transact(ops)
    except TooLarge:
        raise
    except (TransactionFailed, ConnectionLost):
        return Outcome.LOOK_AGAIN
    return Outcome.DONE


def list_touched_paths(action: Action) -> tuple[str, ...]:
    """Return the watched znodes that show an action's effect."""
    match action:
        case CreateTopic():
            return (paths.TOPICS, paths.topic(action.topic), paths.topic_config(action.topic))
        case AddPartitions():
            return (paths.topic(action.topic),)
        case AlterTopicConfig():
            return (paths.topic_config(action.topic),)
        case MarkTopicForDeletion():
            return (paths.DELETE_TOPICS, paths.TOPICS, paths.topic(action.topic))
        case SubmitReassignment():
            topics = {paths.topic(partition.topic) for partition in action.partitions}
            return (paths.REASSIGN_PARTITIONS, *topics)
        case SubmitPreferredElection():
            states = (paths.partition_state(partition) for partition in action.partitions)
            return (paths.PREFERRED_REPLICA_ELECTION, *states)


def make_operations(action: Action) -> Sequence[WriteOp]:
    """Return the transaction of an action in its largest form, because znodes that it creates may exist already."""
    match action:
        case CreateTopic():
            return _create_topic(action, left_behind=None)
        case AddPartitions():
            data = codecs.encode_topic(action.assignment)
            return [SetData(path=paths.topic(action.topic), data=data, version=ZkVersion(action.version))]
        case AlterTopicConfig():
            return _alter_config(action)
        case MarkTopicForDeletion():
            return _mark_for_deletion(action, ANY_VERSION)
        case SubmitReassignment():
            data = codecs.encode_reassignment(action.partitions)
            return [Create(path=paths.REASSIGN_PARTITIONS, data=data)]
        case SubmitPreferredElection():
            data = codecs.encode_partitions(action.partitions)
            return [Create(path=paths.PREFERRED_REPLICA_ELECTION, data=data)]
        case _:
            assert_never(action)


async def _make_present_operations(action: Action, session: ZkSession) -> Sequence[WriteOp] | None:
    """Return the transaction of an action for the present znodes; None if the action no longer applies."""
    match action:
        case CreateTopic():
            (left_behind,) = await session.read_many([paths.topic_config(action.topic)])
            return _create_topic(action, left_behind)
        case MarkTopicForDeletion():
            # Another topic may have taken the name since the view was read.
            (node,) = await session.read_many([paths.topic(action.topic)])
            if node is None or codecs.decode_whole_topic(action.topic, node.data).topic_id != action.topic_id:
                return None
            return _mark_for_deletion(action, node.version)
        case _:
            return make_operations(action)


def _create_topic(action: CreateTopic, left_behind: ZkNode | None) -> Sequence[WriteOp]:
    """Create a topic. A leftover configuration of a deleted topic is replaced, as Kafka's tools do."""
    return [
        put(paths.topic_config(action.topic), left_behind, codecs.encode_config(action.config)),
        Create(path=paths.topic(action.topic), data=codecs.encode_topic(action.assignment)),
    ]


def _alter_config(action: AlterTopicConfig) -> Sequence[WriteOp]:
    path = paths.topic_config(action.topic)
    data = codecs.encode_config(action.config)
    notification = codecs.encode_config_change(f"topics/{action.topic}")
    mode = CreateMode.PERSISTENT_SEQUENTIAL
    return [
        Create(path=path, data=data)
        if action.version is None
        else SetData(path=path, data=data, version=ZkVersion(action.version)),
        Create(path=paths.CONFIG_CHANGE_PREFIX, data=notification, mode=mode),
    ]


def _mark_for_deletion(action: MarkTopicForDeletion, version: ZkVersion) -> Sequence[WriteOp]:
    return [Check(path=paths.topic(action.topic), version=version), Create(path=paths.delete_topic(action.topic))]
