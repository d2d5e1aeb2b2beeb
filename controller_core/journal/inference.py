"""Guesses the cause of a change from the change itself, for a recorder that sees only effects. Pure.

The causes have the same names as the events of Kontroller's own controller. Each rule looks for an effect that only one
procedure of Kafka's controller has. If several procedures have it, the rule picks by far the most frequent one. If no
rule fits, the cause is `unknown`. No guess is certain, so records with such a cause are marked (`inferred`).
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
"""The cause of changes while nobody observed the cluster: neither reason nor time is known."""

_ORDER: Final = (
    TOPIC_DELETIONS_REQUESTED, BROKER_FAILED, BROKER_RESTARTED, BROKER_STARTED, BROKER_MODIFIED, FEATURES_CHANGED,
    TOPICS_CHANGED, CONFIGS_CHANGED, TOPIC_MODIFIED, CONTROLLED_SHUTDOWN, REASSIGNMENTS_REQUESTED, ELECT_LEADERS,
    BALANCE_DUE, ALTER_PARTITION, UNKNOWN,
)  # fmt: skip
"""The order in which causes are recorded: a deleted topic before a new one of the same name, and events of brokers
before their consequences."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Two successive observations of a cluster."""

    before: StateCopy
    after: StateCopy
    restarted: Collection[BrokerId] = ()
    """Brokers that registered again recently and were never seen without a registration in between."""
    controllers: Mapping[ControllerEpoch, BrokerId] = field(default_factory=dict)
    """The controllers of the known terms."""
    shutting_down: Collection[BrokerId] = ()
    """The brokers that asked for a controlled shutdown, if that is known."""


def explain(changes: Sequence[Change], looks: Looks) -> list[tuple[str, list[Change]]]:
    """Return the changes by cause. The changes of one topic keep the order in which they must be recorded."""
    found: defaultdict[str, list[Change]] = defaultdict(list)
    for change in changes:
        found[_cause(change, looks)].append(change)
    return [(cause, found[cause]) for cause in _ORDER if cause in found]


def find_restarted(changes: Sequence[Change]) -> list[BrokerId]:
    """Return the brokers that restarted without being seen unregistered."""
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
    """Return the cause of a change of the ISR alone. A ZooKeeper controller that decides raises the leader epoch; all
    others only ask for an ISR. A KRaft controller, however, removes a failed or stopping follower from the ISR without
    raising the epoch."""
    left = [broker for broker in was.isr if broker not in now.isr]
    if any(broker in looks.before.brokers and broker not in looks.after.brokers for broker in left):
        return BROKER_FAILED
    return CONTROLLED_SHUTDOWN if any(broker in looks.shutting_down for broker in left) else ALTER_PARTITION


def _cause_of_version(key: TopicPartition, looks: Looks) -> str:
    """Return the cause of a new version with equal content. In KRaft mode an assignment shares the version of the
    state."""
    is_moved = _assignment(key, looks.before) != _assignment(key, looks.after)
    return REASSIGNMENTS_REQUESTED if is_moved else ALTER_PARTITION


def _cause_of_first_leader(key: TopicPartition, looks: Looks) -> str:
    """Return `TOPIC_MODIFIED` if the topic already had partitions with a leader, because then this one was added to
    it."""
    known = looks.before.topics.get(key.topic)
    served = known is not None and any(
        TopicPartition(key.topic, other) in looks.before.states for other in known.partitions
    )
    return TOPIC_MODIFIED if served and not _is_new(key.topic, looks) else TOPICS_CHANGED


def _cause_of_brokers(was: LeaderAndIsr, now: LeaderAndIsr, looks: Looks, writer: BrokerId | None) -> str | None:
    """Return the broker event that made a controller take leaderships away, or assign a leader to a leaderless
    partition.

    The writer of the state was alive when it wrote, though it may be gone now: a controller shuts down, or moves
    leaderships away from itself.
    """
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
    """Return the cause of a leader change if no broker failed or started."""
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
    """Return True if the topic was absent in the previous observation."""
    known = looks.before.topics.get(topic)
    return known is None or is_replaced(known, looks.after.topics.get(topic))


def _assignment(key: TopicPartition, state: StateCopy) -> ReplicaAssignment | None:
    topic = state.topics.get(key.topic)
    return topic.partitions.get(key.partition) if topic else None
