"""One reading of the copies of a move: the sizes of the replicas that are being copied, and the bytes left.

Bytes left are the bytes that the leaders have and the new replicas lack, for moving and for waiting partitions. A
replica that is to have another log directory adds the bytes that its copy there lacks. A reading is complete if all
brokers involved have reported the sizes of their replicas.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from controller_core.client.log_dirs.log_sizes import Copies, Copy, LogSizes
from controller_core.client.log_dirs.placing import Directories, Place, Places
from controller_core.model.ids import BrokerId, TopicPartition

Replica = tuple[TopicPartition, BrokerId]
_NO_DIRECTORIES: Final[Directories] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The sizes of all copies at a moment of a clock that only goes forward."""

    at_s: float
    bytes_left: Mapping[TopicPartition, int]
    """By partition; partitions with an unknown size are missing."""
    is_complete: bool = True
    copied: Mapping[Replica, int | None] = field(default_factory=dict)
    """The sizes of the replicas that are being copied; None if a size is not known."""
    failed: frozenset[BrokerId] = frozenset()
    """Brokers that have a failed log directory."""

    @property
    def total_bytes(self) -> int:
        return sum(self.bytes_left.values())


def questions(wanted: Copies, directories: Directories = _NO_DIRECTORIES) -> dict[BrokerId, list[TopicPartition]]:
    """Return the replicas whose sizes or places are needed, by broker."""
    asked: dict[BrokerId, dict[TopicPartition, None]] = {}
    for partition, copy in wanted.items():
        for broker in (copy.leader, *copy.to) if copy.to else ():
            asked.setdefault(broker, {})[partition] = None
    for partition, broker in directories:
        asked.setdefault(broker, {})[partition] = None
    return {broker: [*partitions] for broker, partitions in asked.items()}


def take_reading(
    wanted: Copies, answers: Mapping[BrokerId, LogSizes], at_s: float, directories: Directories = _NO_DIRECTORIES
) -> Reading:
    """Return the reading that the brokers' answers show. Brokers that did not answer are missing in them.

    `directories`: those that replicas of the partitions are to have."""
    left = {partition: _bytes_left(partition, copy, answers) for partition, copy in wanted.items()}
    places, futures = Places(answers=answers), dict[Replica, int | None]()
    for replica, directory in directories.items():
        partition, broker = replica
        if partition not in wanted:
            continue
        found, before = places.find(replica, directory), left[partition]
        left[partition] = None if found.bytes_left is None or before is None else before + found.bytes_left
        if found.place is Place.COPYING and wanted[partition].has_begun:
            futures[partition, broker] = answers[broker].futures[partition].bytes
    known = {partition: size for partition, size in left.items() if size is not None}
    return Reading(
        at_s=at_s,
        bytes_left=known,
        is_complete=len(known) == len(left),
        copied=futures
        | {
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
    """Return the size of a replica that may have no log yet."""
    if answer is None:
        return None
    # A replica without a log has copied nothing. If a directory failed, its log may be there.
    return answer.bytes_of.get(partition, 0 if answer.are_all_seen else None)
