"""Brokers that are to be removed: the specs that put replicas on them, and the progress of their removal.

Placement leaves these brokers out anyway (`Snapshot.closed`). This module handles specs that name brokers.
"""

from collections.abc import Iterable, Mapping, Sequence

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some, name_all
from controller_operator.plans.outcome import Verdict
from controller_operator.resources.cluster import BrokerRemoval, BrokerStatus
from controller_operator.resources.conditions import Reason
from controller_operator.resources.topic import KafkaTopicSpec


def list_pinned_partitions(spec: KafkaTopicSpec, view: Snapshot) -> list[int]:
    """Return the partitions that a replicaAssignment puts on brokers that are to be removed."""
    assignment = spec.replica_assignment or ()
    return [number for number, replicas in enumerate(assignment) if not view.to_remove.isdisjoint(replicas)]


def refuse_assignment(spec: KafkaTopicSpec, view: Snapshot, partitions: Iterable[int] | None = None) -> Verdict | None:
    """Return the verdict on a KafkaTopic whose replicaAssignment names brokers to be removed; None if it names none.

    `partitions`: the relevant partitions; default: all."""
    pinned = list_pinned_partitions(spec, view)
    if partitions is not None:
        meant = set(partitions)
        pinned = [number for number in pinned if number in meant]
    if not pinned:
        return None
    assignment = spec.replica_assignment or ()
    brokers = sorted({broker for number in pinned for broker in assignment[number]} & view.to_remove)
    message = (
        f"spec.replicaAssignment pins replicas of {name_all('partition', pinned)} to {_describe(brokers)}: no replica is "
        "moved there. Name other brokers in replicaAssignment, or give replicationFactor instead"
    )
    return Verdict.make_stalled(Reason.BROKER_TO_BE_REMOVED, message)


def refuse_targets(targets: Mapping[TopicPartition, tuple[BrokerId, ...]], view: Snapshot) -> Verdict | None:
    """Return why a move cannot begin that brings new replicas to brokers to be removed; None if it brings none."""
    found: dict[TopicPartition, frozenset[BrokerId]] = {}
    for tp, replicas in targets.items() if view.to_remove else ():
        assignment = view.assignment_of(tp)
        present = assignment.replicas if assignment else ()
        if added := view.to_remove.intersection(replicas).difference(present):
            found[tp] = added
    if not found:
        return None
    brokers = sorted(set().union(*found.values()))
    message = (
        f"{list_some(found)} would get replicas on {_describe(brokers)}: create a PartitionReassignment that names other "
        "brokers, or take them out of brokersToRemove"
    )
    return Verdict.make_stalled(Reason.BROKER_TO_BE_REMOVED, message)


def explain_closed(view: Snapshot) -> str:
    """Return the words to add if there are not enough brokers; empty if all take new replicas."""
    words = ""
    if view.cordoned:
        cordoned = list_some(sorted(view.cordoned))
        words += f"; those whose log directories are all cordoned take no new replicas: {cordoned}"
    if view.to_remove:
        leaving = list_some(sorted(view.to_remove))
        words += f"; those in spec.brokersToRemove of the KafkaCluster take no new replicas: {leaving}"
    return words


def mark_removals(rows: Iterable[BrokerStatus], view: Snapshot) -> tuple[BrokerStatus, ...]:
    """Return the brokers of a status, with the progress of the removal of those to be removed."""
    return tuple(row.model_copy(update={"removal": _removal(row.id, view)}) for row in rows)


def describe_removals(view: Snapshot) -> str:
    """Return the words about removals for a KafkaCluster; empty if no broker is to be removed."""
    holding = sorted(view.to_remove & view.holders)
    empty = sorted((view.to_remove & view.brokers.keys()) - view.holders)
    words = ""
    if holding:
        holds = _verb(holding, "holds", "hold")
        words += f"; {name_all('broker', holding)} to be removed still {holds} replicas: drain first"
    if empty:
        has, gets = _verb(empty, "has", "have"), _verb(empty, "gets", "get")
        words += f"; {name_all('broker', empty)} to be removed {has} no replicas and {gets} none: safe to stop for good"
    return words


def _removal(broker: BrokerId, view: Snapshot) -> BrokerRemoval | None:
    if broker not in view.to_remove:
        return None
    return BrokerRemoval.HOLDS_REPLICAS if broker in view.holders else BrokerRemoval.EMPTY


def _describe(brokers: list[BrokerId]) -> str:
    verb = _verb(brokers, "is", "are")
    return f"{name_all('broker', brokers)}, which {verb} to be removed (spec.brokersToRemove of the KafkaCluster)"


def _verb(brokers: Sequence[int], one: str, more: str) -> str:
    return one if len(brokers) == 1 else more
