"""The partition state machine of seed 000: what each transition does.

Which transitions there are is decided in `controller_core.model.transitions`, who becomes the leader in
`controller_core.model.leader_selectors`. A partition that may not make a transition, or for which no leader can be
found, is reported and left as it is; the others proceed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from controller_core.controller import topic_configs
from controller_core.controller.partition_states import StateWrite, create_states, read_states, write_states
from controller_core.controller.term import Term
from controller_core.model import leader_selectors
from controller_core.model.ids import TopicName, TopicPartition
from controller_core.model.leader_selectors import NoLeader, Selection
from controller_core.model.metadata import LeaderAndIsr, PartitionState
from controller_core.model.transitions import PartitionStatus, sort_partitions
from controller_core.zk.session import BadVersion


class Election(Enum):
    """Which of the four selectors decides a transition to OnlinePartition."""

    OFFLINE = auto()
    REASSIGNED = auto()
    PREFERRED = auto()
    CONTROLLED_SHUTDOWN = auto()
    UNCLEAN = auto()
    """As OFFLINE, and a person allowed a leader from outside the ISR, whatever the topic says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotElected:
    """A partition that stays as it is, and why."""

    reason: str


NotElectedPartitions = dict[TopicPartition, NotElected]


def to_new(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """NonExistentPartition -> NewPartition: its assigned replicas are in the cluster state already."""
    _mark(term, _legal(term, partitions, PartitionStatus.NEW), PartitionStatus.NEW)


def to_offline(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """NewPartition, OnlinePartition -> OfflinePartition: nothing other than marking it."""
    _mark(term, _legal(term, partitions, PartitionStatus.OFFLINE), PartitionStatus.OFFLINE)


def to_non_existent(term: Term, partitions: Iterable[TopicPartition]) -> None:
    """OfflinePartition -> NonExistentPartition: nothing other than marking it."""
    _mark(term, _legal(term, partitions, PartitionStatus.NON_EXISTENT), PartitionStatus.NON_EXISTENT)


async def to_online(
    term: Term, partitions: Iterable[TopicPartition], election: Election = Election.OFFLINE
) -> NotElectedPartitions:
    """-> OnlinePartition: a first leader for new partitions, another leader by the given selector for the others."""
    legal = _legal(term, partitions, PartitionStatus.ONLINE)
    new = [partition for partition in legal if term.state.partition_status[partition] is PartitionStatus.NEW]
    others = [partition for partition in legal if term.state.partition_status[partition] is not PartitionStatus.NEW]
    not_elected = await _initialize(term, new) | await _elect(term, others, election)
    for partition, failure in not_elected.items():
        term.changes.not_elected(partition, failure.reason)
    _mark(term, [partition for partition in legal if partition not in not_elected], PartitionStatus.ONLINE)
    return not_elected


async def _initialize(term: Term, partitions: list[TopicPartition]) -> NotElectedPartitions:
    """NewPartition -> OnlinePartition: the first live replica leads, all live replicas are the ISR."""
    not_elected: NotElectedPartitions = {}
    chosen: dict[TopicPartition, LeaderAndIsr] = {}
    for partition in partitions:
        selection = leader_selectors.initial_leader(
            term.state.assignment(partition).replicas, term.state.live_replicas(partition)
        )
        if isinstance(selection, NoLeader):
            not_elected[partition] = NotElected(reason=selection.reason)
        else:
            chosen[partition] = selection.leader_and_isr
    failed = await create_states(term, chosen) if chosen else {}
    existing = await read_states(term.zk, failed)
    for partition, error in failed.items():
        if (state := existing.get(partition)) is None:
            not_elected[partition] = NotElected(reason=str(error))
        else:
            term.state.states[partition] = state
    for partition in chosen.keys() - not_elected.keys():
        leader_and_isr = term.state.states[partition].leader_and_isr
        term.changes.leadership(partition, None, leader_and_isr)
        term.batch.leader_and_isr(partition, leader_and_isr.isr, is_new=True)
    return not_elected


async def _elect(term: Term, partitions: list[TopicPartition], election: Election) -> NotElectedPartitions:
    """Elects from the states that ZooKeeper has now; a partition written by someone in between is decided again."""
    not_elected: NotElectedPartitions = {}
    remaining = partitions
    while remaining:
        before = await read_states(term.zk, remaining)
        selections = await _select(term, remaining, before, election, not_elected)
        failed = await write_states(
            term,
            {
                partition: StateWrite(
                    leader_and_isr=selection.leader_and_isr, expected=before[partition].partition_epoch
                )
                for partition, selection in selections.items()
            },
        )
        for partition in selections.keys() - failed.keys():
            selection = selections[partition]
            term.changes.leadership(
                partition, before[partition].leader_and_isr, selection.leader_and_isr, unclean=selection.unclean
            )
            term.counts.leader_elected(unclean=selection.unclean)
            term.batch.leader_and_isr(partition, selection.receivers)
        remaining = [partition for partition, error in failed.items() if isinstance(error, BadVersion)]
        lost = {partition: error for partition, error in failed.items() if not isinstance(error, BadVersion)}
        not_elected.update({partition: NotElected(reason=str(error)) for partition, error in lost.items()})
    return not_elected


async def _select(
    term: Term,
    partitions: list[TopicPartition],
    states: Mapping[TopicPartition, PartitionState],
    election: Election,
    not_elected: NotElectedPartitions,
) -> dict[TopicPartition, Selection]:
    unclean_topics = await _topics_allowing_unclean(term, states) if election is Election.OFFLINE else set()
    selections: dict[TopicPartition, Selection] = {}
    for partition in partitions:
        state = states.get(partition)
        if state is None:
            not_elected[partition] = NotElected(reason="it has no readable state in ZooKeeper")
        elif state.controller_epoch > term.identity.epoch:
            reason = f"its state was written by a later controller, of epoch {state.controller_epoch}"
            not_elected[partition] = NotElected(reason=reason)
        else:
            term.state.states[partition] = state
            selection = _selection(term, partition, state.leader_and_isr, election, unclean_topics)
            if isinstance(selection, NoLeader):
                not_elected[partition] = NotElected(reason=selection.reason)
            else:
                selections[partition] = selection
    return selections


def _selection(
    term: Term, partition: TopicPartition, current: LeaderAndIsr, election: Election, unclean_topics: set[TopicName]
) -> Selection | NoLeader:
    assignment = term.state.assignment(partition)
    match election:
        case Election.OFFLINE | Election.UNCLEAN:
            return leader_selectors.offline_partition_leader(
                assignment.replicas,
                current,
                term.state.live_replicas(partition),
                unclean_allowed=election is Election.UNCLEAN or partition.topic in unclean_topics,
            )
        case Election.REASSIGNED:
            return leader_selectors.reassigned_partition_leader(
                assignment.target, current, term.state.live_replicas(partition)
            )
        case Election.PREFERRED:
            return leader_selectors.preferred_replica_leader(
                assignment.replicas, current, term.state.live_replicas(partition)
            )
        case Election.CONTROLLED_SHUTDOWN:
            return leader_selectors.controlled_shutdown_leader(
                assignment.replicas, current, term.state.reachable_replicas(partition), term.state.shutting_down
            )


async def _topics_allowing_unclean(term: Term, states: Mapping[TopicPartition, PartitionState]) -> set[TopicName]:
    """The topics, among those with a partition that has no live in-sync replica, that allow unclean elections."""
    in_question = {
        partition.topic
        for partition, state in states.items()
        if term.state.live_replicas(partition).isdisjoint(state.leader_and_isr.isr)
    }
    return await topic_configs.allowing_unclean_election(term, in_question)


def _legal(term: Term, partitions: Iterable[TopicPartition], wanted: PartitionStatus) -> list[TopicPartition]:
    legal, illegal = sort_partitions(partitions, wanted, term.state.partition_status)
    for refused in illegal:
        term.changes.refused(refused)
    return legal


def _mark(term: Term, partitions: Iterable[TopicPartition], status: PartitionStatus) -> None:
    for partition in partitions:
        before = term.state.partition_status.get(partition, PartitionStatus.NON_EXISTENT)
        term.state.partition_status[partition] = status
        term.changes.partition(partition, before, status)
