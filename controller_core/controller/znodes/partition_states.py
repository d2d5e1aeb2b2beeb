"""Reads and writes of the state znodes of many partitions at once.

Every write is fenced by the controller epoch, and conditional on the version that the decision was made from. A lost
race is reported for its partition, and never aborts the others (`FencedWriter`).
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import structlog

from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.state.unusable_znodes import UnusableZnodes
from controller_core.controller.term.rights import Remembers, Writes, ZkReads
from controller_core.model.ids import LeaderEpoch, PartitionEpoch, TopicPartition
from controller_core.model.metadata import LeaderAndIsr, PartitionState
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import ensure_znodes
from controller_core.zk.session import (
    Create,
    NodeExists,
    OperationRefused,
    SetData,
    TransactionFailed,
    WriteOp,
    ZkNode,
    ZkVersion,
)

log = structlog.get_logger()

READ_AT_ONCE: Final = 10_000
"""The number of states to read at a time. The results of two such reads are in memory together."""
DECODED_AT_ONCE: Final = 5000
"""The number of states to decode before the event loop gets its turn: a few milliseconds."""
LOST_LEADER_EPOCH: Final = LeaderEpoch(1 << 16)
"""The leader epoch of a partition whose state was lost: above all that brokers know, and far below the maximum."""
_LOST_PARTITION_EPOCH: Final = PartitionEpoch(1000)
_MOST_REWRITES: Final = 100_000
"""The maximum of writes that raise partition epochs at a time, so that many of them do not delay a takeover."""
_OPS_AT_ONCE: Final = 500


async def read_states(
    zk: ZkReads, partitions: Iterable[TopicPartition], unusable: UnusableZnodes
) -> dict[TopicPartition, PartitionState]:
    """Return the present states in ZooKeeper, except partitions without a state znode, or with an unreadable one.

    ZooKeeper reads the next states while the last ones are decoded. Other tasks get their turn every few milliseconds,
    however many partitions there are.
    """
    wanted = list(partitions)
    parts = [wanted[first : first + READ_AT_ONCE] for first in range(0, len(wanted), READ_AT_ONCE)]
    states: dict[TopicPartition, PartitionState] = {}
    if not parts:
        return states
    reading = asyncio.create_task(_read(zk, parts[0]))
    try:
        for part, following in zip(parts, [*parts[1:], []], strict=True):
            nodes = await reading
            # ZooKeeper reads the next part while this one is decoded.
            reading = asyncio.create_task(_read(zk, following))
            for start in range(0, len(part), DECODED_AT_ONCE):
                taken = slice(start, start + DECODED_AT_ONCE)
                _decode(part[taken], nodes[taken], states, unusable)
                if len(part) > DECODED_AT_ONCE:
                    await asyncio.sleep(0)
    finally:
        reading.cancel()
    return states


async def _read(zk: ZkReads, partitions: list[TopicPartition]) -> list[ZkNode | None]:
    return await zk.read_many(paths.partition_states(partitions))


def _decode(
    partitions: list[TopicPartition],
    nodes: list[ZkNode | None],
    states: dict[TopicPartition, PartitionState],
    unusable: UnusableZnodes,
) -> None:
    decode, has_unusable = codecs.decode_partition_state, unusable.standing["partition_state"] > 0
    for partition, node in zip(partitions, nodes, strict=True):
        if node is None:
            continue
        try:
            states[partition] = decode(partition, node)
        except MalformedZnode as error:
            unusable.report(error.path, "unreadable partition state, left alone", error, partition=str(partition))
        else:
            if has_unusable:
                unusable.clear(paths.partition_state(partition))


async def find_states(term: Remembers, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionState]:
    """Return the states that this term knows, and read the others.

    Nobody else writes states during the term, but former controllers and people may have. A decision made from these
    states is written on the condition of their versions, and made again from ZooKeeper's states if that fails.
    """
    wanted = list(partitions)
    states = {p: state for p in wanted if (state := term.state.states.get(p)) is not None}
    return states if len(states) == len(wanted) else states | await reread(term, (p for p in wanted if p not in states))


async def reread(term: Remembers, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionState]:
    """Read the present states in ZooKeeper into the cluster state, and return them."""
    states = await read_states(term.zk, partitions, term.state.unusable)
    term.state.set_states(states)
    return states


async def write_states(
    term: Writes, decided: Mapping[TopicPartition, LeaderAndIsr], before: Mapping[TopicPartition, PartitionState]
) -> dict[TopicPartition, TransactionFailed]:
    """Write leaderships if the states are still those that they were decided from. Return the failures.

    Written states are in the cluster state afterwards. The failed ones have to be read and decided again.
    """
    epoch = term.identity.epoch
    outcome = await term.writer.write(
        {
            partition: (
                SetData(
                    path=paths.partition_state(partition),
                    data=codecs.encode_partition_state(leader_and_isr, epoch),
                    version=ZkVersion(before[partition].partition_epoch),
                ),
            )
            for partition, leader_and_isr in decided.items()
        }
    )
    _remember(term, {p: (decided[p], PartitionEpoch(before[p].partition_epoch + 1)) for p in outcome.written})
    _report_refused(term.state, outcome.failed, outcome.written)
    return outcome.failed


async def create_states(
    term: Writes, states: Mapping[TopicPartition, LeaderAndIsr]
) -> dict[TopicPartition, TransactionFailed]:
    """Create the state znodes of new partitions with their parents. Return the failures.

    A state is created together with its parent. A parent without a state means that the state was lost, and that
    brokers may know the partition. Its new state begins above all epochs that they can know.
    """
    topics = dict.fromkeys(partition.topic for partition in states)
    parents = await term.writer.write({topic: [Create(path=paths.partitions(topic))] for topic in topics})
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
    _remember(term, {partition: (states[partition], PartitionEpoch(0)) for partition in outcome.written})
    # Below a parent that an ACL keeps from being created there is no znode, which does not tell the cause.
    refused = {topic: error for topic, error in parents.failed.items() if isinstance(error, OperationRefused)}
    failed = {partition: refused.get(partition.topic, error) for partition, error in outcome.failed.items()}
    _report_refused(term.state, failed, outcome.written)
    half_made = [partition for partition, error in failed.items() if isinstance(error, NodeExists)]
    begun = await _begin_lost(term, {partition: states[partition] for partition in half_made}) if half_made else set()
    return {partition: error for partition, error in failed.items() if partition not in begun}


def _report_refused(
    state: ReadOnlyState, failed: Mapping[TopicPartition, TransactionFailed], written: Iterable[TopicPartition]
) -> None:
    """Report the states that ACLs protect from this controller, and clear the reports of those that were written."""
    unusable = state.unusable
    for partition, error in failed.items():
        if isinstance(error, OperationRefused):
            path, consequence = paths.partition_state(partition), "partition state cannot be written, left as it is"
            unusable.report(path, consequence, error, partition=str(partition))
    if unusable.standing["partition_state"]:
        for partition in written:
            unusable.clear(paths.partition_state(partition))


async def _begin_lost(term: Writes, states: Mapping[TopicPartition, LeaderAndIsr]) -> set[TopicPartition]:
    """Create the states of partitions whose states were lost. Return those that had none and have one now."""
    partitions = list(states)
    nodes = await _read(term.zk, partitions)
    lost = [partition for partition, node in zip(partitions, nodes, strict=True) if node is None]
    above = PartitionEpoch(min(_LOST_PARTITION_EPOCH, _MOST_REWRITES // max(len(lost), 1)))
    begun: set[TopicPartition] = set()
    for partition in lost:
        leader_and_isr = replace(states[partition], leader_epoch=LOST_LEADER_EPOCH)
        if (why := await _create_above(term, partition, leader_and_isr, above)) is not None:
            log.error("state of a partition cannot be written", partition=str(partition), error=str(why))
            continue
        log.error("state of a partition was lost: all live replicas count as in sync", partition=str(partition))
        begun.add(partition)
    return begun


async def restore_states(
    term: Writes, decided: Mapping[TopicPartition, LeaderAndIsr], before: Mapping[TopicPartition, PartitionState]
) -> dict[TopicPartition, TransactionFailed]:
    """Create lost state znodes again, above their former partition epochs. Return the failures."""
    failed: dict[TopicPartition, TransactionFailed] = {}
    for partition, leader_and_isr in decided.items():
        why = await _create_above(term, partition, leader_and_isr, before[partition].partition_epoch)
        if why is not None:
            failed[partition] = why
    return failed


async def _create_above(
    term: Writes, partition: TopicPartition, leader_and_isr: LeaderAndIsr, above: PartitionEpoch
) -> TransactionFailed | None:
    """Create a state znode with a partition epoch above the given one, which brokers may know. Return any error.

    Brokers ignore a state with a smaller partition epoch than their own. The partition epoch is the version of the
    znode. A new znode has version 0, and each write adds one, so the state is written as often as needed.
    """
    state, data = paths.partition_state(partition), codecs.encode_partition_state(leader_and_isr, term.identity.epoch)
    ops: list[WriteOp] = [Create(path=state, data=data)]
    ops += [SetData(path=state, data=data, version=ZkVersion(version)) for version in range(above + 1)]
    try:
        parents = [Create(path=paths.partitions(partition.topic)), Create(path=paths.partition(partition))]
        await ensure_znodes(term.zk, parents, term.writer.transact)
        await _transact(term, ops)
    except TransactionFailed as why:
        return why
    _remember(term, {partition: (leader_and_isr, PartitionEpoch(above + 1))})
    return None


async def raise_partition_epochs(term: Writes, wanted: Mapping[TopicPartition, PartitionEpoch]) -> set[TopicPartition]:
    """Rewrite states until their partition epochs are these or later. Return those that need too many writes.

    A state that somebody else writes at the same time is left to the next conditional write, which reads it again.
    """
    writes_left = _MOST_REWRITES
    too_far: set[TopicPartition] = set()
    for partition, state in (await find_states(term, wanted)).items():
        versions = range(state.partition_epoch, wanted[partition])
        if len(versions) > writes_left:
            too_far.add(partition)
            continue
        writes_left -= len(versions)
        path = paths.partition_state(partition)
        data = codecs.encode_partition_state(state.leader_and_isr, term.identity.epoch)
        try:
            await _transact(term, [SetData(path=path, data=data, version=ZkVersion(version)) for version in versions])
        except TransactionFailed as why:
            log.warning("partition epoch is not raised", partition=str(partition), error=str(why))
            continue
        if versions:
            _remember(term, {partition: (state.leader_and_isr, wanted[partition])})
    return too_far


async def _transact(term: Writes, ops: Sequence[WriteOp]) -> None:
    """Apply any number of operations in their order, some hundreds at a time. Raises `TransactionFailed`."""
    for start in range(0, len(ops), _OPS_AT_ONCE):
        await term.writer.transact(ops[start : start + _OPS_AT_ONCE])


def _remember(term: Remembers, written: Mapping[TopicPartition, tuple[LeaderAndIsr, PartitionEpoch]]) -> None:
    controller_epoch = term.identity.epoch
    term.state.set_states(
        {
            partition: PartitionState(
                leader_and_isr=leader_and_isr, controller_epoch=controller_epoch, partition_epoch=partition_epoch
            )
            for partition, (leader_and_isr, partition_epoch) in written.items()
        }
    )
