"""Reading and writing the state znodes of many partitions at once.

Every write is conditional on the version that the decision was made from and fenced by the controller epoch. Losing the
race for one partition is reported for that partition; it never aborts the others (`FencedWriter`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import structlog

from controller_core.controller.term import Term
from controller_core.model.ids import PartitionEpoch, TopicPartition
from controller_core.model.metadata import LeaderAndIsr, PartitionState
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Create, NodeExists, SetData, TransactionFailed, ZkSession, ZkVersion

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWrite:
    """A decided leadership, and the version of the state that it was decided from."""

    leader_and_isr: LeaderAndIsr
    expected: PartitionEpoch


async def read_states(zk: ZkSession, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionState]:
    """The states that ZooKeeper has now; partitions without a state znode, or with an unreadable one, are left out."""
    wanted = list(partitions)
    nodes = await zk.read_many([paths.partition_state(partition) for partition in wanted])
    states: dict[TopicPartition, PartitionState] = {}
    for partition, node in zip(wanted, nodes, strict=True):
        if node is None:
            continue
        try:
            states[partition] = codecs.decode_partition_state(partition, node)
        except MalformedZnode as error:
            log.error("unreadable partition state, left alone", partition=str(partition), error=str(error))
    return states


async def write_states(
    term: Term, writes: Mapping[TopicPartition, StateWrite]
) -> dict[TopicPartition, TransactionFailed]:
    """Writes decided leaderships and takes those that were written into the cluster state; returns the others."""
    outcome = await term.writer.write(
        {
            partition: [
                SetData(
                    path=paths.partition_state(partition),
                    data=codecs.encode_partition_state(write.leader_and_isr, term.identity.epoch),
                    version=ZkVersion(write.expected),
                )
            ]
            for partition, write in writes.items()
        }
    )
    for partition in outcome.written:
        write = writes[partition]
        _remember(term, partition, write.leader_and_isr, PartitionEpoch(write.expected + 1))
    return outcome.failed


async def create_states(
    term: Term, states: Mapping[TopicPartition, LeaderAndIsr]
) -> dict[TopicPartition, TransactionFailed]:
    """Creates the state znodes of new partitions with their parents; returns those that could not be created."""
    topics = dict.fromkeys(partition.topic for partition in states)
    await term.writer.write({topic: [Create(path=paths.partitions(topic))] for topic in topics})
    created = {
        partition: Create(
            path=paths.partition_state(partition),
            data=codecs.encode_partition_state(leader_and_isr, term.identity.epoch),
        )
        for partition, leader_and_isr in states.items()
    }
    outcome = await term.writer.write(
        {partition: [Create(path=paths.partition(partition)), create] for partition, create in created.items()}
    )
    written, failed = list(outcome.written), outcome.failed
    half_made = [partition for partition, error in failed.items() if isinstance(error, NodeExists)]
    if half_made:
        retried = await term.writer.write({partition: [created[partition]] for partition in half_made})
        written += retried.written
        failed = {
            partition: error for partition, error in failed.items() if partition not in half_made
        } | retried.failed
    for partition in written:
        _remember(term, partition, states[partition], PartitionEpoch(0))
    return failed


def _remember(term: Term, partition: TopicPartition, leader_and_isr: LeaderAndIsr, epoch: PartitionEpoch) -> None:
    term.state.states[partition] = PartitionState(
        leader_and_isr=leader_and_isr, controller_epoch=term.identity.epoch, partition_epoch=epoch
    )
