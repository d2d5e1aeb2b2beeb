"""KafkaTopics that would move replicas back. A PartitionReassignment checks for them before anything moves.

A KafkaTopic with driftPolicy Enforce pins the replicas that its replicaAssignment names, or with replicationFactor
their number. There are two exceptions: entries of a replicaAssignment on a broker that is to be removed, because they
are not carried out, and a KafkaTopic that is not carried out itself (`may_pin`).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_operator.plans.outcome import Notice, Verdict, ready_reason
from controller_operator.plans.topic_ids import format_id
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import PartitionReassignment
from controller_operator.resources.topic import KafkaTopic

Targets = Mapping[TopicPartition, tuple[BrokerId, ...]]
ReplicaCounts = Mapping[str, Collection[int]]
"""The topics that move, each with the new numbers of replicas of those partitions whose number changes."""
FindPins = Callable[[ReplicaCounts, Collection[BrokerId]], Sequence[KafkaTopic]]
"""Returns the KafkaTopics of the Kafka cluster with driftPolicy Enforce that may pin the moves: those with a
replicaAssignment and one of these topics or brokers, and those whose topic would get another number of replicas."""


def find_no_pins(_counts: ReplicaCounts, _brokers: Collection[BrokerId]) -> Sequence[KafkaTopic]:
    """There are no KafkaTopics."""
    return ()


def may_pin(resource: KafkaTopic, view: Snapshot) -> bool:
    """Return True if the object has its topic, or may be about to have it.

    An object that is refused has no topic, and neither has one that waits for something and has not requested a topic.
    A tenant could otherwise keep the administrator's moves from beginning with an object that is never carried out."""
    status, topic = resource.status, view.topics.get(TopicName(resource.topic_name))
    if topic is not None and format_id(topic.assignment.topic_id) == status.topic_id:
        return True
    if status.condition(ConditionType.STALLED) is not None:
        return False
    return topic is not None or status.is_requested or ready_reason(status) is None


def refuse_pinned(move: PartitionReassignment, targets: Targets, view: Snapshot, find_pins: FindPins) -> Verdict | None:
    """Return why a move that has not begun would be undone, with each KafkaTopic and the change to make; else None."""
    drained = frozenset(move.spec.drain_brokers or ()) - view.to_remove
    by_topic: defaultdict[str, dict[TopicPartition, tuple[BrokerId, ...]]] = defaultdict(dict)
    for tp, replicas in targets.items():
        by_topic[tp.topic][tp] = replicas
    resizing = {name: _find_resizing(of_topic, view) for name, of_topic in by_topic.items()}
    counts = {name: {len(by_topic[name][tp]) for tp in partitions} for name, partitions in resizing.items()}
    topics = [each for each in find_pins(counts, drained) if may_pin(each, view)]
    naming = [each for each in topics if not drained.isdisjoint(_name_brokers(each))]
    moved = [(each, _find_pinned(each, by_topic[each.topic_name], view)) for each in topics if each not in naming]
    resized = [(each, resizing.get(each.topic_name, [])) for each in topics if not each.spec.replica_assignment]
    words = [
        *([_refuse_drain(sorted(drained), naming)] if naming else ()),
        *_refuse(moved, "spec.replicaAssignment"),
        *_refuse(resized, "spec.replicationFactor"),
    ]
    return Verdict.make_stalled(Reason.PINNED_BY_TOPIC, "; ".join(words)) if words else None


def warn_of_overruled(move: PartitionReassignment, view: Snapshot, find_pins: FindPins) -> tuple[Notice, ...]:
    """Return the event about KafkaTopics whose replicaAssignment is overruled by a drain of brokers to be removed."""
    removed = frozenset(move.spec.drain_brokers or ()) & view.to_remove
    found = find_pins({}, removed) if removed else ()
    topics = [each for each in found if may_pin(each, view) and not removed.isdisjoint(_name_brokers(each))]
    if not topics:
        return ()
    message = (
        f"replicas leave broker {list_some(sorted(removed))} although spec.replicaAssignment of KafkaTopic "
        f"{_list_names(topics)} names it: it is to be removed, so nothing is moved back; change replicaAssignment "
        "there"
    )
    return (Notice(reason="AssignmentOverruled", message=message, is_warning=True),)


def _refuse_drain(drained: Sequence[BrokerId], naming: Sequence[KafkaTopic]) -> str:
    return (
        f"KafkaTopic {_list_names(naming)} would move replicas back to broker {list_some(drained)} "
        "(driftPolicy Enforce): name other brokers in spec.replicaAssignment there; or add the broker to "
        "spec.brokersToRemove of the KafkaCluster, then nothing is moved back"
    )


def _refuse(pinned: Iterable[tuple[KafkaTopic, Sequence[TopicPartition]]], field: str) -> list[str]:
    return [
        f"KafkaTopic {topic.metadata.full_name} would move {list_some(partitions)} back (driftPolicy Enforce): change "
        f"{field} there, which moves them, or set its driftPolicy to Report"
        for topic, partitions in pinned
        if partitions
    ]


def _find_resizing(targets: Targets, view: Snapshot) -> list[TopicPartition]:
    """Return the partitions whose number of replicas would change."""
    present = {tp: view.assignment_of(tp) for tp in targets}
    return [tp for tp, now in present.items() if now is not None and len(now.target) != len(targets[tp])]


def _find_pinned(resource: KafkaTopic, targets: Targets, view: Snapshot) -> list[TopicPartition]:
    """Return the partitions whose replicaAssignment differs from the move of their topic."""
    assignment = resource.spec.replica_assignment or ()
    return [
        tp
        for tp, replicas in targets.items()
        if tp.partition < len(assignment)
        and assignment[tp.partition] != replicas
        and view.to_remove.isdisjoint(assignment[tp.partition])
    ]


def _name_brokers(resource: KafkaTopic) -> set[BrokerId]:
    return {broker for replicas in resource.spec.replica_assignment or () for broker in replicas}


def _list_names(topics: Iterable[KafkaTopic]) -> str:
    return list_some(each.metadata.full_name for each in topics)
