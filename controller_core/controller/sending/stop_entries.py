"""Encoded entries of replicas in StopReplica, by topics."""

import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set

from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.model.ids import EPOCH_DURING_DELETE, NO_EPOCH, LeaderEpoch, TopicName, TopicPartition
from controller_core.wire.codecs import entries
from controller_core.zk import paths


def stop_entries(
    state: ReadOnlyState, stops: Mapping[TopicPartition, bool], strays: Set[TopicPartition]
) -> Iterator[bytes]:
    """Yield the topics of a StopReplica with these partitions. The values are True if the replica is deleted.

    The logs of `strays` may belong to a former topic of the same name, so no leader epoch is compared.
    """
    by_topic: defaultdict[TopicName, list[bytes]] = defaultdict(list)
    for partition, delete in stops.items():
        leader_epoch = NO_EPOCH if partition in strays else _leader_epoch(state, partition)
        try:
            by_topic[partition.topic].append(entries.stop(partition.partition, leader_epoch, delete=delete))
        except struct.error as error:
            consequence = "a replica is not stopped: its leader epoch in ZooKeeper is too large"
            state.unusable.report(paths.partition_state(partition), consequence, error, leader_epoch=leader_epoch)
    for name, listed in by_topic.items():
        if listed:
            yield entries.encode_stopped_topic(name, listed)


def _leader_epoch(state: ReadOnlyState, partition: TopicPartition) -> LeaderEpoch:
    """Return the fence of KIP-570: a delayed StopReplica must not stop a replica that was added again since."""
    if partition.topic in state.deletions or partition in state.removals:
        return EPOCH_DURING_DELETE
    known = state.states.get(partition)
    return known.leader_and_isr.leader_epoch if known else NO_EPOCH
