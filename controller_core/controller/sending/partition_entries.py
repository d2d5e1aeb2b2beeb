"""Encoded entries of partitions in control requests: each is written once, for all brokers that get it.

The entries belong to one batch of requests, during which the state does not change.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import groupby
from operator import itemgetter
from typing import Final

from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import PartitionState, ReplicaAssignment
from controller_core.wire.codecs import entries
from controller_core.zk import paths

_NOTHING: Final = b""
"""Stands for a partition that brokers are not sent."""
USUAL: Final = entries.leader_and_isr_end((), (), is_new=False, recovery_state=0)
_USUAL_NEW: Final = entries.leader_and_isr_end((), (), is_new=True, recovery_state=0)
_TOPIC: Final = itemgetter(0)


class PartitionEntries:
    """The entries of partitions in LeaderAndIsr and UpdateMetadata, by topics."""

    def __init__(self, state: ReadOnlyState, deleted: Mapping[TopicPartition, TopicId | None]) -> None:
        """`deleted` are partitions that brokers have to forget, with the ids of their topics."""
        self._state = state
        self._deleted = deleted
        self._starts: defaultdict[TopicName, dict[PartitionId, bytes]] = defaultdict(dict)
        self._unusual: dict[TopicPartition, PartitionState] = {}
        """Partitions with additional fields in LeaderAndIsr: they are being reassigned, or their leader recovers."""
        self._ends = MetadataEnds(state.live_or_shutting_down)
        self._leaving = set(filter(state.has_deletion_started, state.deletions))

    def leader_and_isr(self, partitions: Mapping[TopicPartition, bool]) -> Iterator[bytes]:
        """Yield the topics of a LeaderAndIsr. The values are True if a partition is new to the broker.

        Partitions that are gone since, or have no leadership yet, are left out.
        """
        has_new = any(partitions.values())
        for name, listed in _group_by_topic(partitions).items():
            starts = self._starts_of(name, listed)
            if has_new or self._unusual:
                ends = [self._leader_and_isr_end(partition, is_new=partitions[partition]) for partition in listed]
                written = [start + end for start, end in zip(starts, ends, strict=True) if start]
            else:
                written = [start + USUAL for start in starts if start]
            if written:
                yield entries.topic(name, self._state.topics[name].topic_id, written)

    def leaders(self, partitions: Iterable[TopicPartition]) -> set[BrokerId]:
        """Return the leaders of those of the partitions that have a leadership."""
        return {state.leader_and_isr.leader for state in map(self._state.states.get, partitions) if state is not None}

    def update_metadata(self, partitions: Iterable[TopicPartition]) -> Iterator[bytes]:
        """Yield the topics of an UpdateMetadata with these partitions.

        Partitions that are gone or being deleted are left out. Partitions to forget may belong to a former topic of the
        name. They come last, under the id of the present topic: a broker drops a topic's id together with the last
        partition that it knows, whatever follows in the same request.
        """
        for name, listed in _group_by_topic(partitions).items():
            gone = self._deleted.keys() & listed if self._deleted else ()
            if gone:
                listed = [partition for partition in listed if partition not in gone]
            by_id: defaultdict[TopicId | None, list[bytes]] = defaultdict(list)
            known = [] if name in self._leaving else self._metadata_entries(name, listed)
            if known:
                by_id[self._state.topics[name].topic_id] = known
            for partition in gone:
                topic_id = self._state.topics[name].topic_id if known else self._deleted[partition]
                by_id[topic_id].append(entries.encode_deleted_partition(partition.partition))
            for topic_id, written in by_id.items():
                yield entries.topic(name, topic_id, written)

    def _starts_of(self, topic: TopicName, partitions: Sequence[TopicPartition]) -> list[bytes]:
        """Return the starts of the entries of one topic's partitions; empty for those that brokers are not sent."""
        known = self._state.topics.get(topic)
        if known is None:
            return [_NOTHING] * len(partitions)
        starts, states, assignments = self._starts[topic], self._state.states, known.partitions
        found: list[bytes] = []
        for partition in partitions:
            number = partition[1]
            start = starts.get(number)
            if start is None:
                state, assignment = states.get(partition), assignments.get(number)
                start = _NOTHING if state is None or assignment is None else self._start(partition, state, assignment)
                starts[number] = start
            found.append(start)
        return found

    def _start(self, partition: TopicPartition, state: PartitionState, assignment: ReplicaAssignment) -> bytes:
        if assignment.adding or assignment.removing or state.leader_and_isr.leader_recovery_state:
            self._unusual[partition] = state
        try:
            return entries.partition_start(partition[1], state, assignment.replicas)
        except struct.error as error:
            consequence = "a partition is sent to no broker: a value in ZooKeeper is too large"
            self._state.unusable.report(paths.partition_state(partition), consequence, error, state=state)
            return _NOTHING

    def _leader_and_isr_end(self, partition: TopicPartition, *, is_new: bool) -> bytes:
        state = self._unusual.get(partition)
        if state is None:
            return _USUAL_NEW if is_new else USUAL
        assignment = self._state.assignment(partition)
        return entries.leader_and_isr_end(
            assignment.adding,
            assignment.removing,
            is_new=is_new,
            recovery_state=state.leader_and_isr.leader_recovery_state.value,
        )

    def _metadata_entries(self, topic: TopicName, partitions: Sequence[TopicPartition]) -> list[bytes]:
        """Return the entries. Without failed log directories, the replicas alone determine which of them are offline."""
        """Without failed log directories it follows from the replicas alone which of them are offline."""
        starts = zip(self._starts_of(topic, partitions), partitions, strict=True)
        if self._state.failed_replicas:
            return [start + entries.update_metadata_end(self._not_served(p)) for start, p in starts if start]
        known, ends = self._state.topics.get(topic), self._ends
        return [start + ends[known.partitions[p[1]].replicas] for start, p in starts if start and known]

    def _not_served(self, partition: TopicPartition) -> tuple[BrokerId, ...]:
        replicas = self._state.assignment(partition).replicas
        return tuple(broker for broker in replicas if not self._state.is_served_by(partition, broker))


class MetadataEnds(dict[tuple[BrokerId, ...], bytes]):
    """The ends of entries in UpdateMetadata by the assigned replicas, written on first use."""

    def __init__(self, live: Set[BrokerId]) -> None:
        super().__init__()
        self._live = live

    def __missing__(self, replicas: tuple[BrokerId, ...]) -> bytes:
        offline = tuple(broker for broker in replicas if broker not in self._live)
        self[replicas] = end = entries.update_metadata_end(offline)
        return end


def _group_by_topic(partitions: Iterable[TopicPartition]) -> dict[TopicName, list[TopicPartition]]:
    by_topic: defaultdict[TopicName, list[TopicPartition]] = defaultdict(list)
    for name, run in groupby(partitions, _TOPIC):
        by_topic[name] += run
    return by_topic
