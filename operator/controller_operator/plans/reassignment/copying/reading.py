"""One reading of the copies of a move: how large the replicas are that are being copied, and how much is left.

Bytes left are what the leaders have and the new replicas do not: of what moves, and of what waits for its turn. A reading
is complete if all brokers that take part have said how large their replicas are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller_core.model.ids import BrokerId, TopicPartition
from controller_operator.kafka.log_sizes import Copies, Copy, LogSizes

Replica = tuple[TopicPartition, BrokerId]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The sizes of all copies at a moment of a clock that only goes forward."""

    at_s: float
    bytes_left: Mapping[TopicPartition, int]
    """By partition; those of which something is not known are missing."""
    is_complete: bool = True
    copied: Mapping[Replica, int | None] = field(default_factory=dict)
    """The sizes of the replicas that are being copied; None if a size is not known."""
    failed: frozenset[BrokerId] = frozenset()
    """Brokers that have a failed log directory."""

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes_left.values())


def questions(wanted: Copies) -> dict[BrokerId, list[TopicPartition]]:
    """Return the brokers that have to say how large which of their replicas are."""
    asked: dict[BrokerId, list[TopicPartition]] = {}
    for partition, copy in wanted.items():
        for broker in (copy.leader, *copy.to) if copy.to else ():
            asked.setdefault(broker, []).append(partition)
    return asked


def reading(wanted: Copies, answers: Mapping[BrokerId, LogSizes], at_s: float) -> Reading:
    """Return what the answers of the brokers show; brokers that did not answer are missing in them."""
    left = {partition: _bytes_left(partition, copy, answers) for partition, copy in wanted.items()}
    known = {partition: size for partition, size in left.items() if size is not None}
    return Reading(
        at_s=at_s,
        bytes_left=known,
        is_complete=len(known) == len(left),
        copied={
            (partition, broker): _size(partition, answers.get(broker))
            for partition, copy in wanted.items()
            if copy.has_begun
            for broker in copy.to
        },
        failed=frozenset(broker for broker, answer in answers.items() if not answer.are_all_seen),
    )


def _bytes_left(partition: TopicPartition, copy: Copy, answers: Mapping[BrokerId, LogSizes]) -> int | None:
    if not copy.to:
        return 0
    sizes = [_leaders_size(partition, answers.get(copy.leader))]
    sizes += [_size(partition, answers.get(broker)) for broker in copy.to]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    source, *copied = known
    return sum(max(0, source - size) for size in copied)


def _leaders_size(partition: TopicPartition, answer: LogSizes | None) -> int | None:
    return answer.bytes_of.get(partition) if answer else None


def _size(partition: TopicPartition, answer: LogSizes | None) -> int | None:
    """The size of a replica that may have no log yet."""
    if answer is None:
        return None
    return answer.bytes_of.get(partition, 0 if answer.are_all_seen else None)
