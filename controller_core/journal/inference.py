"""Why something changed, guessed from what changed: for a recorder, which sees the effects alone. Pure.

The words are those that our own controller has for the events it handles. Each rule looks at what only one procedure of
Kafka's controller does; where several would do the same, it says what is by far the most frequent. What no rule knows is
`unknown`. Nothing here is certain, and records that carry such a cause say so (`inferred`).
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from controller_core.journal.batches import StateCopy
from controller_core.journal.changes import Change, Kind
from controller_core.journal.observed import is_replaced
from controller_core.model.ids import BrokerId, ControllerEpoch, TopicName, TopicPartition
from controller_core.model.metadata import LeaderAndIsr, PartitionState, ReplicaAssignment

TOPIC_DELETIONS_REQUESTED: Final = "topic_deletions_requested"
BROKER_FAILED: Final = "broker_failed"
BROKER_RESTARTED: Final = "broker_restarted"
BROKER_STARTED: Final = "broker_started"
BROKER_MODIFIED: Final = "broker_modified"
FEATURES_CHANGED: Final = "features_changed"
CONFIGS_CHANGED: Final = "configs_changed"
TOPICS_CHANGED: Final = "topics_changed"
TOPIC_MODIFIED: Final = "topic_modified"
CONTROLLED_SHUTDOWN: Final = "controlled_shutdown"
REASSIGNMENTS_REQUESTED: Final = "reassignments_requested"
ELECT_LEADERS: Final = "elect_leaders"
BALANCE_DUE: Final = "balance_due"
ALTER_PARTITION: Final = "alter_partition"
UNKNOWN: Final = "unknown"
UNOBSERVED: Final = "unobserved"
"""The cause of what changed while nobody looked on: neither why nor when is known."""

_ORDER: Final = (
    TOPIC_DELETIONS_REQUESTED, BROKER_FAILED, BROKER_RESTARTED, BROKER_STARTED, BROKER_MODIFIED, FEATURES_CHANGED,
    TOPICS_CHANGED, CONFIGS_CHANGED, TOPIC_MODIFIED, CONTROLLED_SHUTDOWN, REASSIGNMENTS_REQUESTED, ELECT_LEADERS,
    BALANCE_DUE, ALTER_PARTITION, UNKNOWN,
)  # fmt: skip
"""In which causes are recorded: a topic that is gone before the next one of its name, what brokers did before what
follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Two successive looks at a cluster."""

    before: StateCopy
    after: StateCopy
    restarted: Collection[BrokerId] = ()
    """The brokers that have got another registration lately, without having been seen without one."""
    controllers: Mapping[ControllerEpoch, BrokerId] = field(default_factory=dict)
    """Who was the controller in the terms that are known."""
    shutting_down: Collection[BrokerId] = ()
    """The brokers that have asked to be relieved, where that is told."""


def explain(changes: Sequence[Change], looks: Looks) -> list[tuple[str, list[Change]]]:
    """The changes by their causes. The changes of one topic keep the order in which they must be recorded."""
    found: defaultdict[str, list[Change]] = defaultdict(list)
    for change in changes:
        found[_cause(change, looks)].append(change)
    return [(cause, found[cause]) for cause in _ORDER if cause in found]


def restarted(changes: Sequence[Change]) -> list[BrokerId]:
    """The brokers that were down and are back, and were not seen in between."""
    of_brokers = [change for change in changes if change.kind is Kind.BROKER]
    return [change.key for change in of_brokers if _cause_of_broker(change) == BROKER_RESTARTED]


def _cause(change: Change, looks: Looks) -> str:
    match change.kind:
        case Kind.BROKER:
            return _cause_of_broker(change)
        case Kind.FEATURES:
            return FEATURES_CHANGED
        case Kind.TOPIC:
            if change.after is None:
                return TOPIC_DELETIONS_REQUESTED
            return TOPICS_CHANGED if change.before is None else TOPIC_MODIFIED
        case Kind.ASSIGNMENT:
            return _cause_of_assignment(change, looks)
        case Kind.BROKER_CONFIG:
            return CONFIGS_CHANGED
        case Kind.TOPIC_CONFIG:
            return _cause_of_topic_config(change, looks)
        case _:
            return _cause_of_leadership(change, looks)


def _cause_of_broker(change: Change) -> str:
    if change.after is None:
        return BROKER_FAILED
    if change.before is None:
        return BROKER_STARTED
    return BROKER_MODIFIED if change.before.epoch == change.after.epoch else BROKER_RESTARTED


def _cause_of_assignment(change: Change, looks: Looks) -> str:
    if change.before is None and _is_new(change.key.topic, looks):
        return TOPICS_CHANGED
    if change.before is None or change.after is None:
        return TOPIC_MODIFIED
    return REASSIGNMENTS_REQUESTED


def _cause_of_topic_config(change: Change, looks: Looks) -> str:
    topic = looks.before.topics.get(change.key)
    if change.after is None and is_replaced(topic, looks.after.topics.get(change.key)):
        return TOPIC_DELETIONS_REQUESTED
    return TOPICS_CHANGED if change.before is None and _is_new(change.key, looks) else CONFIGS_CHANGED


def _cause_of_leadership(change: Change, looks: Looks) -> str:
    before: PartitionState | None = change.before
    after: PartitionState | None = change.after
    if after is None:
        return TOPIC_DELETIONS_REQUESTED
    if before is None:
        return _cause_of_first_leader(change.key, looks)
    was, now = before.leader_and_isr, after.leader_and_isr
    if (was.leader, was.leader_epoch) == (now.leader, now.leader_epoch):
        return _cause_of_version(change.key, looks) if was.isr == now.isr else _cause_of_isr(was, now, looks)
    writer = looks.controllers.get(after.controller_epoch)
    return _cause_of_brokers(was, now, looks, writer) or _cause_of_election(change.key, was, now, looks)


def _cause_of_isr(was: LeaderAndIsr, now: LeaderAndIsr, looks: Looks) -> str:
    """Why the ISR alone is another one. A controller that decides raises the leader epoch, all others only ask for an ISR;
    but one without ZooKeeper takes a follower out of it that failed just now, or shuts down, and leaves the epoch."""
    left = [broker for broker in was.isr if broker not in now.isr]
    if any(broker in looks.before.brokers and broker not in looks.after.brokers for broker in left):
        return BROKER_FAILED
    return CONTROLLED_SHUTDOWN if any(broker in looks.shutting_down for broker in left) else ALTER_PARTITION


def _cause_of_version(key: TopicPartition, looks: Looks) -> str:
    """Why a state has a new version and says the same: without ZooKeeper it has one of its own for its assignment, too."""
    is_moved = _assignment(key, looks.before) != _assignment(key, looks.after)
    return REASSIGNMENTS_REQUESTED if is_moved else ALTER_PARTITION


def _cause_of_first_leader(key: TopicPartition, looks: Looks) -> str:
    """A partition of a topic of which others were served before was added to it."""
    known = looks.before.topics.get(key.topic)
    served = known is not None and any(
        TopicPartition(key.topic, other) in looks.before.states for other in known.partitions
    )
    return TOPIC_MODIFIED if served and not _is_new(key.topic, looks) else TOPICS_CHANGED


def _cause_of_brokers(was: LeaderAndIsr, now: LeaderAndIsr, looks: Looks, writer: BrokerId | None) -> str | None:
    """What brokers did that makes a controller take leaderships away, or give them where nobody led. Whoever wrote the
    state was there when it did, though it may be gone by now: a controller shuts down, or moves away from itself."""
    left = {broker for broker in was.isr if broker not in now.isr}
    if was.has_leader and was.leader != now.leader:
        left.add(was.leader)
    if any(broker not in looks.after.brokers and broker != writer for broker in left):
        return BROKER_FAILED
    if left.intersection(looks.restarted):
        return BROKER_RESTARTED
    if not was.has_leader and now.leader in was.isr:
        return BROKER_STARTED
    return None


def _cause_of_election(key: TopicPartition, was: LeaderAndIsr, now: LeaderAndIsr, looks: Looks) -> str:
    """Why leadership moved among brokers that are all there."""
    present = _assignment(key, looks.after)
    if any(found and found.is_being_reassigned for found in (_assignment(key, looks.before), present)):
        return REASSIGNMENTS_REQUESTED
    if any(broker not in now.isr for broker in was.isr):
        return CONTROLLED_SHUTDOWN
    if not was.has_leader:
        return ELECT_LEADERS
    if was.leader == now.leader:
        return UNKNOWN
    return BALANCE_DUE if present and now.leader == present.preferred else ELECT_LEADERS


def _is_new(topic: TopicName, looks: Looks) -> bool:
    """Whether the topic was not there at the look before."""
    known = looks.before.topics.get(topic)
    return known is None or is_replaced(known, looks.after.topics.get(topic))


def _assignment(key: TopicPartition, state: StateCopy) -> ReplicaAssignment | None:
    topic = state.topics.get(key.topic)
    return topic.partitions.get(key.partition) if topic else None
