"""The PartitionReassignment that moved the replicas of a topic, for as long as that object exists."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import TopicSnapshot
from controller_core.model.wording import list_some
from controller_operator.resources.reassignment import PartitionReassignment
from controller_operator.resources.topic import Difference, KafkaTopic

FindMovers = Callable[[], Sequence[PartitionReassignment]]
"""Returns the objects that move partitions of a topic, or have moved them."""
_ELSEWHERE: Final = "changed elsewhere"


@dataclass(frozen=True, slots=True)
class Change:
    """Differences that were made in the same way."""

    how: str
    """Such as `moved by kpr/orders-to-3`, or `changed elsewhere`."""
    keys: tuple[str, ...]


def find_no_movers() -> Sequence[PartitionReassignment]:
    """There are no moves."""
    return ()


def explain_changes(
    resource: KafkaTopic, topic: TopicSnapshot, found: Iterable[Difference], find_movers: FindMovers
) -> list[Change]:
    """Return the differences by the moves that made them; those of unknown origin come last."""
    partitions = {each.key: _partitions(each, resource, topic) for each in found}
    moves = find_movers() if any(partitions.values()) else ()
    by_how: dict[str, list[str]] = {}
    for key, meant in partitions.items():
        names = sorted({_mover(TopicPartition(topic.name, number), topic, moves) or "" for number in meant})
        how = f"moved by {list_some(_short(name, resource) for name in names)}" if all(names) and names else _ELSEWHERE
        by_how.setdefault(how, []).append(key)
    return sorted((Change(how, tuple(keys)) for how, keys in by_how.items()), key=lambda each: each.how == _ELSEWHERE)


def _partitions(difference: Difference, resource: KafkaTopic, topic: TopicSnapshot) -> list[PartitionId]:
    """Return the partitions whose replicas a difference is about."""
    if difference.key == "replicationFactor":
        factor = resource.spec.replication_factor
        return [number for number, each in topic.partitions.items() if len(each.target) != factor]
    return [number for number in topic.partitions if difference.key == f"replicaAssignment[{number}]"]


def _mover(tp: TopicPartition, topic: TopicSnapshot, moves: Sequence[PartitionReassignment]) -> str | None:
    """Return the object, as namespace/name, that moved a partition to its present replicas; None if there is none."""
    present = topic.partitions[tp.partition].target
    began = [
        (move.status.start_time, move.metadata.full_name)
        for move in moves
        if move.status.start_time is not None and _target_of(move, tp.topic, tp.partition) == present
    ]
    return max(began)[1] if began else None


def _target_of(move: PartitionReassignment, topic: TopicName, number: PartitionId) -> tuple[BrokerId, ...] | None:
    return next((each.replicas for each in move.targets if (each.topic, each.partition) == (topic, number)), None)


def _short(name: str, resource: KafkaTopic) -> str:
    """Return how a message names a move: without the namespace if that is the topic's own."""
    namespace, _, own = name.partition("/")
    return f"kpr/{own}" if namespace == resource.metadata.namespace else f"kpr/{own} of namespace {namespace}"
