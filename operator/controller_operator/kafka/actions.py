"""What a plan may ask to be done to a Kafka cluster, and how it is written to ZooKeeper.

Each action is one transaction in the form that Kafka's own tools write, so that any controller acts on it, and it is
conditional: on the versions that the plan was made over, or on the absence of what it creates. Where the condition does
not hold, nothing is written and the outcome is `LOOK_AGAIN`: the next plan is made over the cluster as it is then. So
an action that is repeated, by a restarted operator or after a lost answer, is done once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import assert_never

from controller_core.model.ids import BrokerId, TopicId, TopicName, TopicPartition
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
    """Creates a topic with its configuration, the assignment last: that is what wakes the controller."""

    topic: TopicName
    assignment: TopicAssignment
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitions:
    """Writes an assignment that has more partitions than before, and otherwise the same."""

    topic: TopicName
    assignment: TopicAssignment
    version: ZkVersion
    present: int = 0
    """How many partitions of the assignment there are already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterTopicConfig:
    """Replaces a topic's configuration and notifies the brokers. `version` None: the topic has had none."""

    topic: TopicName
    config: Mapping[str, str]
    version: ZkVersion | None
    changes: Mapping[str, str | None] = field(default_factory=dict)
    """The keys that change, with their new values; None for those that go back to their defaults."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkTopicForDeletion:
    """Asks for a topic's deletion, where it still is the topic with this id."""

    topic: TopicName
    topic_id: TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitReassignment:
    """Asks for the reassignment of partitions. As a transaction it is Kafka's older way, of which there can be one at a
    time: for clusters whose controller cannot be asked (`requests.moves`)."""

    partitions: Mapping[TopicPartition, tuple[BrokerId, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitPreferredElection:
    """Asks for the election of preferred leaders; there can be one such request at a time."""

    partitions: tuple[TopicPartition, ...]


Action = (
    CreateTopic | AddPartitions | AlterTopicConfig | MarkTopicForDeletion | SubmitReassignment | SubmitPreferredElection
)


class Outcome(Enum):
    """What came of an action."""

    DONE = "done"
    LOOK_AGAIN = "look again"
    """The cluster is not as the plan thought, or an answer was lost. Nothing to report: plan again."""


async def execute(action: Action, session: ZkSession) -> Outcome:
    """Carries an action out. Raises the `ZkError`s that are no answer to the action itself, and `TooLarge`."""
    ops = await _present_operations(action, session)
    if ops is None:
        return Outcome.LOOK_AGAIN
    try:
        await session.transact(ops)
    except TooLarge:
        raise
    except (TransactionFailed, ConnectionLost):
        return Outcome.LOOK_AGAIN
    return Outcome.DONE


def touched_paths(action: Action) -> tuple[str, ...]:
    """The watched znodes in which an action's effect shows."""
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


def operations(action: Action) -> Sequence[WriteOp]:
    """The transaction of an action, in its largest form: what it creates may be there already."""
    match action:
        case CreateTopic():
            return _create_topic(action, left_behind=None)
        case AddPartitions():
            data = codecs.encode_topic(action.assignment)
            return [SetData(path=paths.topic(action.topic), data=data, version=action.version)]
        case AlterTopicConfig():
            return _alter_config(action)
        case MarkTopicForDeletion():
            return _mark_for_deletion(action, ANY_VERSION)
        case SubmitReassignment():
            data = codecs.encode_reassignment(action.partitions)
            return [Create(path=paths.REASSIGN_PARTITIONS, data=data)]
        case SubmitPreferredElection():
            data = codecs.encode_preferred_election(action.partitions)
            return [Create(path=paths.PREFERRED_REPLICA_ELECTION, data=data)]
        case _:
            assert_never(action)


async def _present_operations(action: Action, session: ZkSession) -> Sequence[WriteOp] | None:
    """The transaction of an action, after a look at what is there; None where it makes no sense any more."""
    match action:
        case CreateTopic():
            (left_behind,) = await session.read_many([paths.topic_config(action.topic)])
            return _create_topic(action, left_behind)
        case MarkTopicForDeletion():
            # Between the view and now another topic may have taken the name.
            (node,) = await session.read_many([paths.topic(action.topic)])
            if node is None or codecs.decode_whole_topic(action.topic, node.data).topic_id != action.topic_id:
                return None
            return _mark_for_deletion(action, node.version)
        case _:
            return operations(action)


def _create_topic(action: CreateTopic, left_behind: ZkNode | None) -> Sequence[WriteOp]:
    """A deleted topic's configuration may have been left behind; it is replaced, as Kafka's tools do."""
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
        else SetData(path=path, data=data, version=action.version),
        Create(path=paths.CONFIG_CHANGE_PREFIX, data=notification, mode=mode),
    ]


def _mark_for_deletion(action: MarkTopicForDeletion, version: ZkVersion) -> Sequence[WriteOp]:
    return [Check(path=paths.topic(action.topic), version=version), Create(path=paths.delete_topic(action.topic))]
