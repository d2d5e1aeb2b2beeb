"""What brokers are told of partitions, as bytes: each partition's entry is written once, for all brokers that get it.

Made for one batch of requests and dropped with it; the state does not change meanwhile.
"""

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
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

    def leader_and_isr(self, partitions: Mapping[TopicPartition, bool]) -> tuple[list[bytes], set[BrokerId]]:
        """The topics of LeaderAndIsr for partitions, by whether they are new, and the leaders that they name.

        Partitions that are gone since, or have no leadership yet, are left out."""
        by_topic: defaultdict[TopicName, list[bytes]] = defaultdict(list)
        states, leaders = self._state.states, set()
        for partition, is_new in partitions.items():
            if entry := self._new[partition] if is_new else self._known[partition]:
                by_topic[partition.topic].append(entry)
                leaders.add(states[partition].leader_and_isr.leader)
        ids = self._state.topics
        return [entries.topic(name, ids[name].topic_id, written) for name, written in by_topic.items()], leaders

    def update_metadata(self, partitions: Iterable[TopicPartition]) -> list[bytes]:
        """The topics of UpdateMetadata for partitions; those that are gone or on their way out are left out."""
        by_topic: defaultdict[tuple[TopicName, TopicId | None], list[bytes]] = defaultdict(list)
        ids = {name: (name, topic.topic_id) for name, topic in self._state.topics.items()}
        for partition in partitions:
            if partition in self._deleted:
                key = partition.topic, self._deleted[partition]
                by_topic[key].append(entries.deleted_partition(partition.partition))
            elif partition.topic not in self._leaving and (start := self._starts[partition]):
                by_topic[ids[partition.topic]].append(start + self._offline(partition))
        return [entries.topic(name, topic_id, written) for (name, topic_id), written in by_topic.items()]

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


class _Written(dict[K, bytes]):
    """Bytes by what they say, written when they are first asked for."""

    def __init__(self, write: Callable[[K], bytes]) -> None:
        super().__init__()
        self._write = write

    def __missing__(self, key: K) -> bytes:
        self[key] = written = self._write(key)
        return written
