"""What brokers are told of partitions, as bytes: each partition's entry is written once, for all brokers that get it.

Made for one batch of requests and dropped with it; the state does not change meanwhile.
"""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, TypeVar

import structlog

from controller_core.controller.cluster_state import ClusterState
from controller_core.model.ids import BrokerId, TopicId, TopicName, TopicPartition
from controller_core.wire import entries

log = structlog.get_logger()

_NOTHING: Final = b""
"""Instead of the entry of a partition that brokers are not told of."""

K = TypeVar("K")


class PartitionEntries:
    """The entries of partitions in LeaderAndIsr and UpdateMetadata, by topics."""

    def __init__(self, state: ClusterState, deleted: Mapping[TopicPartition, TopicId | None]) -> None:
        """`deleted` are partitions that brokers shall forget, with the ids of their topics."""
        self._state = state
        self._deleted = deleted
        self._starts = _Written(self._start)
        self._known = _Written(partial(self._leader_and_isr_entry, is_new=False))
        self._new = _Written(partial(self._leader_and_isr_entry, is_new=True))
        self._metadata_ends = _Written(self._metadata_end)
        self._leaving = {name for name, deletion in state.deletions.items() if deletion.started}

    def leader_and_isr(self, partitions: Mapping[TopicPartition, bool]) -> Iterator[bytes]:
        """The topics of LeaderAndIsr for partitions, by whether they are new, one after the other.

        Partitions that are gone since, or have no leadership yet, are left out."""
        has_new = any(partitions.values())
        known, new, topics = self._known, self._new, self._state.topics
        for name, listed in _by_topic(partitions).items():
            if has_new:
                written = [new[partition] if partitions[partition] else known[partition] for partition in listed]
            else:
                written = [known[partition] for partition in listed]
            if told := list(filter(None, written)):
                yield entries.topic(name, topics[name].topic_id, told)

    def leaders(self, partitions: Iterable[TopicPartition]) -> set[BrokerId]:
        """The leaders of those of the partitions that LeaderAndIsr tells of."""
        states = self._state.states
        return {states[partition].leader_and_isr.leader for partition in partitions if self._starts[partition]}

    def update_metadata(self, partitions: Iterable[TopicPartition]) -> Iterator[bytes]:
        """The topics of UpdateMetadata for partitions, one after the other.

        Those that are gone or on their way out are left out; those to be forgotten may be of a former topic of the name."""
        starts, offline = self._starts, self._offline
        for name, listed in _by_topic(partitions).items():
            by_id: defaultdict[TopicId | None, list[bytes]] = defaultdict(list)
            if self._deleted and (gone := self._deleted.keys() & listed):
                for partition in gone:
                    by_id[self._deleted[partition]].append(entries.deleted_partition(partition.partition))
                listed = [partition for partition in listed if partition not in gone]
            if name not in self._leaving and (told := [p for p in listed if starts[p]]):
                by_id[self._state.topics[name].topic_id] += [
                    starts[partition] + offline(partition) for partition in told
                ]
            for topic_id, written in by_id.items():
                yield entries.topic(name, topic_id, written)

    def _start(self, partition: TopicPartition) -> bytes:
        state = self._state.states.get(partition)
        if state is None or not self._state.has(partition):
            return _NOTHING
        try:
            return entries.partition_start(partition.partition, state, self._state.assignment(partition).replicas)
        except struct.error as error:
            log.error(
                "brokers are not told of a partition: a value in ZooKeeper is too large",
                partition=str(partition),
                state=state,
                error=str(error),
            )
            return _NOTHING

    def _leader_and_isr_entry(self, partition: TopicPartition, *, is_new: bool) -> bytes:
        if not (start := self._starts[partition]):
            return _NOTHING
        assignment = self._state.assignment(partition)
        recovery_state = self._state.states[partition].leader_and_isr.leader_recovery_state
        return start + entries.leader_and_isr_end(
            assignment.adding, assignment.removing, is_new=is_new, recovery_state=recovery_state
        )

    def _offline(self, partition: TopicPartition) -> bytes:
        """What an entry in UpdateMetadata ends with. Without failed directories it follows from the replicas alone."""
        replicas = self._state.assignment(partition).replicas
        if not self._state.failed_replicas:
            return self._metadata_ends[replicas]
        served = self._state.is_served_by
        return entries.update_metadata_end(tuple(broker for broker in replicas if not served(partition, broker)))

    def _metadata_end(self, replicas: tuple[BrokerId, ...]) -> bytes:
        return entries.update_metadata_end(tuple(broker for broker in replicas if broker not in self._state.brokers))


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[TopicName, list[TopicPartition]]:
    by_topic: defaultdict[TopicName, list[TopicPartition]] = defaultdict(list)
    for partition in partitions:
        by_topic[partition[0]].append(partition)
    return by_topic


class _Written(dict[K, bytes]):
    """Bytes by what they say, written when they are first asked for."""

    def __init__(self, write: Callable[[K], bytes]) -> None:
        super().__init__()
        self._write = write

    def __missing__(self, key: K) -> bytes:
        self[key] = written = self._write(key)
        return written
