"""Commits of leaderships: decisions about the leader and the ISR of partitions take effect here.

A decision is written to ZooKeeper, on the condition that the states it was made from are still current. Then it enters
the cluster state, from which the journal records it. It is logged, and sent to the brokers. Only this module does any
of this. So brokers are never sent a decision that was not written, and every written decision is recorded and sent.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import structlog

from controller_core.controller.term.rights import Sends
from controller_core.controller.term.term import Term
from controller_core.controller.znodes.partition_states import (
    create_states,
    find_states,
    reread,
    restore_states,
    write_states,
)
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.leader_selectors import Selection, raise_leader_epoch
from controller_core.model.metadata import LeaderAndIsr, PartitionState
from controller_core.zk.compare_and_set import Unwritten, compare_and_set_each, find_unwritten
from controller_core.zk.session import Conflict, OperationRefused, TransactionFailed

log = structlog.get_logger()

Starting = Mapping[TopicPartition, Collection[BrokerId]]
"""The brokers for which a replica is new. They are sent the leadership as well."""

_NOBODY: Final[Starting] = MappingProxyType({})
_NO_STATES: Final[Mapping[TopicPartition, PartitionState]] = MappingProxyType({})


async def commit(
    term: Term,
    decided: Mapping[TopicPartition, Selection],
    before: Mapping[TopicPartition, PartitionState],
    *,
    starting: Starting = _NOBODY,
) -> dict[TopicPartition, TransactionFailed]:
    """Commit new leaderships of partitions that have one already, decided from the states `before`.

    LeaderAndIsr goes to the receivers of each, and UpdateMetadata to all brokers. Return those that were not written
    because somebody else has written them since, which have to be read and decided again, or because ACLs deny it.
    """
    leaderships = {partition: selection.leader_and_isr for partition, selection in decided.items()}
    failed = await write_states(term, leaderships, before)
    committed = {p: selection for p, selection in decided.items() if p not in failed} if failed else decided
    _log_and_send(term, committed, before)
    if new := {partition: starting[partition] for partition in committed if partition in starting}:
        term.batch.add_leader_and_isr_of(new, is_new=True)
    return failed


Attempt = Callable[[Mapping[TopicPartition, PartitionState]], Awaitable[Mapping[TopicPartition, TransactionFailed]]]
"""Decides leaderships from states and commits them. Returns the result of `commit`."""


async def retry_until_committed(term: Term, partitions: Iterable[TopicPartition], attempt: Attempt) -> None:
    """Run the attempt with the states that this term knows. Repeat it for states that somebody else wrote since.

    A partition whose topic is deleted in between is left out. One that somebody writes all the time is left as it is,
    with an error in the log.
    """
    states = await find_states(term, partitions)

    async def attempt_and_reread(_: Sequence[TopicPartition]) -> dict[TopicPartition, Unwritten]:
        nonlocal states
        lost = find_unwritten(await attempt(states))
        states = await reread_or_restore(term, [p for p, error in lost.items() if isinstance(error, Conflict)])
        return {p: error for p, error in lost.items() if p in states or isinstance(error, OperationRefused)}

    for partition, error in (await compare_and_set_each(states, attempt_and_reread)).items():
        if isinstance(error, OperationRefused):
            continue  # `write_states` has reported it
        log.error("leadership of a partition is left as it is", partition=str(partition), error=str(error))


async def commit_first(
    term: Term, decided: Mapping[TopicPartition, Selection]
) -> dict[TopicPartition, TransactionFailed]:
    """Commit the first leaderships of new partitions, by creating their state znodes. Return those that failed.

    A partition that already has a state keeps it. That state is sent to its ISR.
    """
    leaderships = {partition: selection.leader_and_isr for partition, selection in decided.items()}
    failed = await create_states(term, leaderships) if decided else {}
    existing = {p: _make_selection(state.leader_and_isr) for p, state in (await reread(term, failed)).items()}
    failed = {partition: error for partition, error in failed.items() if partition not in existing}
    states = term.state.states
    committed = {
        p: existing.get(p) or selection._replace(leader_and_isr=states[p].leader_and_isr)
        for p, selection in decided.items()
        if p not in failed
    }
    _log_and_send(term, committed, _NO_STATES, is_new=True)
    return failed


async def reread_or_restore(term: Term, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionState]:
    """Return the states that ZooKeeper has now. A state that somebody deleted is written again from memory."""
    former = {p: state for p in partitions if (state := term.state.states.get(p)) is not None}
    found = await reread(term, partitions)
    gone = {p: state for p, state in former.items() if p not in found and not term.state.is_being_deleted(p.topic)}
    return found | await restore(term, gone) if gone else found


async def restore(term: Term, former: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, PartitionState]:
    """Write deleted states again under the next leader epoch, because brokers ignore an epoch that they know.

    Return those that were written. Partitions of deleted topics, and those that have a znode, are left out.
    """
    decided = {p: raise_leader_epoch(state.leader_and_isr) for p, state in former.items() if term.state.has(p)}
    failed = await restore_states(term, decided, former)
    for partition, why in failed.items():
        log.error("state of a partition cannot be restored", partition=str(partition), error=str(why))
    restored = [partition for partition in decided if partition not in failed]
    for partition in restored:
        log.error("state of a partition was deleted by somebody, and is restored", partition=str(partition))
    receivers = {p: Selection(decided[p], receivers=term.state.assignment(p).replicas) for p in restored}
    _log_and_send(term, receivers, former)
    return {partition: term.state.states[partition] for partition in restored}


def _make_selection(leader_and_isr: LeaderAndIsr) -> Selection:
    return Selection(leader_and_isr=leader_and_isr, receivers=leader_and_isr.isr)


def _log_and_send(
    term: Sends,
    committed: Mapping[TopicPartition, Selection],
    before: Mapping[TopicPartition, PartitionState],
    *,
    is_new: bool = False,
) -> None:
    log = term.state_change_log.log_leadership
    for partition, (leader_and_isr, _, is_unclean) in committed.items():
        former = before.get(partition)
        log(partition, former.leader_and_isr if former else None, leader_and_isr, unclean=is_unclean)
    receivers = {partition: selection.receivers for partition, selection in committed.items()}
    if any(receivers.values()):
        term.batch.add_leader_and_isr_of(receivers, is_new=is_new)
    else:
        term.batch.update_metadata(receivers)
