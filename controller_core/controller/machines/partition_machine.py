"""The partition state machine of seed 000: the effects of each transition.

`controller_core.model.transitions` decides which transitions are legal, `controller_core.model.leader_selectors` which
replica becomes the leader. A partition whose transition is illegal, or for which no leader can be found, is reported
and stays as it is; the others proceed.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from types import MappingProxyType
from typing import Final

from controller_core.controller.machines.leaderships import commit, commit_first, reread_or_restore
from controller_core.controller.state.liveness import Liveness
from controller_core.controller.state.read_only_state import ReadOnlyState
from controller_core.controller.term.groups import run_in_groups
from controller_core.controller.term.rights import Reads, Remembers
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import topic_configs
from controller_core.controller.znodes.partition_states import find_states
from controller_core.model import leader_selectors
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.leader_selectors import NoLeader, Selection
from controller_core.model.metadata import EndsOfLogs, LeaderAndIsr, LogEnd, PartitionState
from controller_core.model.transitions import PartitionStatus, sort_partitions
from controller_core.zk.compare_and_set import Unwritten, compare_and_set_each, find_unwritten
from controller_core.zk.session import OperationRefused

_NOTHING_KNOWN: Final[Mapping[BrokerId, LogEnd]] = MappingProxyType({})


class Election(Enum):
    """The selector that decides a transition to OnlinePartition."""

    OFFLINE = auto()
    REASSIGNED = auto()
    PREFERRED = auto()
    CONTROLLED_SHUTDOWN = auto()
    UNCLEAN = auto()
    """As OFFLINE, but a person allowed a leader from outside the ISR, whatever the topic's configuration is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotElected:
    """The reason why a partition stays as it is."""

    reason: str


NotElectedPartitions = dict[TopicPartition, NotElected]


def make_new(term: Remembers, partitions: Iterable[TopicPartition]) -> None:
    """NonExistentPartition -> NewPartition: its assigned replicas are in the cluster state already."""
    _mark(term, _legal(term, partitions, PartitionStatus.NEW), PartitionStatus.NEW)


def take_offline(term: Remembers, partitions: Iterable[TopicPartition]) -> None:
    """NewPartition, OnlinePartition -> OfflinePartition: only the mark changes."""
    _mark(term, _legal(term, partitions, PartitionStatus.OFFLINE), PartitionStatus.OFFLINE)


def make_non_existent(term: Remembers, partitions: Iterable[TopicPartition]) -> None:
    """OfflinePartition -> NonExistentPartition: only the mark changes."""
    _mark(term, _legal(term, partitions, PartitionStatus.NON_EXISTENT), PartitionStatus.NON_EXISTENT)


async def bring_online(
    term: Term,
    partitions: Iterable[TopicPartition],
    election: Election = Election.OFFLINE,
    log_ends: EndsOfLogs = MappingProxyType({}),
) -> NotElectedPartitions:
    """-> OnlinePartition: elect the first leaders of new partitions. For the others the given selector elects.

    `log_ends` are the known ends of logs of replicas outside the ISR, for an unclean election.
    """
    legal = _legal(term, partitions, PartitionStatus.ONLINE)
    status = term.state.partition_status
    new = [partition for partition in legal if status[partition] is PartitionStatus.NEW]
    others = [partition for partition in legal if status[partition] is not PartitionStatus.NEW]
    not_elected: NotElectedPartitions = {}

    async def bring_group_online(group: Sequence[TopicPartition], step: _Step) -> None:
        failures = await step(term, group)
        for partition, failure in failures.items():
            term.state_change_log.log_not_elected(partition, failure.reason)
        _mark(term, [partition for partition in group if partition not in failures], PartitionStatus.ONLINE)
        not_elected.update(failures)

    await run_in_groups(term, new, partial(bring_group_online, step=_initialize))
    await run_in_groups(
        term, others, partial(bring_group_online, step=partial(_elect, election=election, log_ends=log_ends))
    )
    return not_elected


_Step = Callable[[Term, Sequence[TopicPartition]], Awaitable[NotElectedPartitions]]


async def _initialize(term: Term, partitions: Sequence[TopicPartition]) -> NotElectedPartitions:
    """NewPartition -> OnlinePartition: the first live replica leads, all live replicas are the ISR.

    A partition that has a state already keeps it, for example one that was repaired during the term. If its leader is
    not live, another one is elected, as for a partition that lost its leader.
    """
    not_elected: NotElectedPartitions = {}
    chosen: dict[TopicPartition, Selection] = {}
    live_replicas = Liveness(term.state, term.state.live)
    for partition in partitions:
        selection = leader_selectors.elect_initial_leader(
            term.state.assignment(partition).replicas, live_replicas(partition)
        )
        if isinstance(selection, NoLeader):
            not_elected[partition] = NotElected(reason=selection.reason)
        else:
            chosen[partition] = selection
    failed = await commit_first(term, chosen)
    not_elected |= {partition: NotElected(reason=str(error)) for partition, error in failed.items()}
    leaderless = [p for p in chosen if p not in failed and not term.state.is_leader_live(p)]
    if leaderless:
        take_offline(term, leaderless)
        not_elected |= await _elect(term, leaderless, election=Election.OFFLINE, log_ends=MappingProxyType({}))
    return not_elected


async def _elect(
    term: Term, partitions: Sequence[TopicPartition], *, election: Election, log_ends: EndsOfLogs
) -> NotElectedPartitions:
    """Elect from the states that this term knows.

    Partitions that these states cannot decide, and those that somebody else has written since, are decided from
    ZooKeeper's states, until that succeeds or gives a reason why not.
    """
    known = await find_states(term, partitions)
    selections, _ = _select(term, known, _selector(term.state, election, log_ends))
    lost = await _lead(term, known, selections)
    refused = {partition: error for partition, error in lost.items() if isinstance(error, OperationRefused)}
    not_elected: NotElectedPartitions = {}

    async def elect_from_zookeeper(remaining: Sequence[TopicPartition]) -> dict[TopicPartition, Unwritten]:
        found = await reread_or_restore(term, remaining)
        unclean_topics = await _topics_allowing_unclean(term, found) if election is Election.OFFLINE else set()
        selections, refused = _select(term, found, _selector(term.state, election, log_ends, unclean_topics))
        unreadable = NotElected(reason="it has no readable state in ZooKeeper")
        not_elected.update(dict.fromkeys((p for p in remaining if p not in found), unreadable) | refused)
        return await _lead(term, found, selections)

    undecided = [p for p in partitions if (p in lost and p not in refused) or p not in selections]
    unwritten = refused | await compare_and_set_each(undecided, elect_from_zookeeper)
    return not_elected | {partition: NotElected(reason=str(error)) for partition, error in unwritten.items()}


def _select(
    term: Reads, states: Mapping[TopicPartition, PartitionState], select: "_Selector"
) -> tuple[dict[TopicPartition, Selection], NotElectedPartitions]:
    """Return the new leaderships, and for the others the reasons why there is none."""
    selections: dict[TopicPartition, Selection] = {}
    refused: NotElectedPartitions = {}
    for partition, state in states.items():
        if state.controller_epoch > term.identity.epoch:
            reason = f"its state was written by a later controller, of epoch {state.controller_epoch}"
            refused[partition] = NotElected(reason=reason)
            continue
        selection = select(partition, state.leader_and_isr)
        if isinstance(selection, NoLeader):
            refused[partition] = NotElected(reason=selection.reason)
        else:
            selections[partition] = selection
    return selections, refused


async def _lead(
    term: Term, before: Mapping[TopicPartition, PartitionState], selections: dict[TopicPartition, Selection]
) -> dict[TopicPartition, Unwritten]:
    """Commit the new leaderships and count them. Return those that were not written."""
    lost = find_unwritten(await commit(term, selections, before))
    elected = [selection for partition, selection in selections.items() if partition not in lost]
    term.counts.count_elections(len(elected), unclean=sum(selection.unclean for selection in elected))
    return lost


_Selector = Callable[[TopicPartition, LeaderAndIsr], Selection | NoLeader]


def _selector(
    state: ReadOnlyState, election: Election, log_ends: EndsOfLogs, unclean_topics: Set[TopicName] = frozenset()
) -> _Selector:
    """Return the selector of an election, with its view of the cluster. The view is current until the next `await`."""
    assignment, shutting_down = state.assignment, state.shutting_down
    live, reachable = Liveness(state, state.live), Liveness(state, state.live_or_shutting_down)
    match election:
        case Election.OFFLINE | Election.UNCLEAN:
            is_unclean = election is Election.UNCLEAN
            return lambda p, current: leader_selectors.elect_offline_partition_leader(
                assignment(p).replicas,
                current,
                live(p),
                unclean_allowed=is_unclean or p.topic in unclean_topics,
                adding=assignment(p).adding,
                log_ends=log_ends.get(p, _NOTHING_KNOWN),
            )
        case Election.REASSIGNED:
            return lambda p, current: leader_selectors.elect_reassigned_partition_leader(
                assignment(p).target, current, live(p)
            )
        case Election.PREFERRED:
            return lambda p, current: leader_selectors.elect_preferred_replica_leader(
                assignment(p).replicas, current, live(p)
            )
        case Election.CONTROLLED_SHUTDOWN:
            return lambda p, current: leader_selectors.elect_controlled_shutdown_leader(
                assignment(p).replicas, current, reachable(p), shutting_down
            )


async def _topics_allowing_unclean(term: Remembers, states: Mapping[TopicPartition, PartitionState]) -> set[TopicName]:
    """Return the topics that allow unclean elections, among those with a partition without live in-sync replica."""
    live_replicas = Liveness(term.state, term.state.live)
    in_question = {
        partition.topic
        for partition, state in states.items()
        if live_replicas(partition).isdisjoint(state.leader_and_isr.isr)
    }
    return await topic_configs.find_allowing_unclean_election(term, in_question)


def _legal(term: Remembers, partitions: Iterable[TopicPartition], wanted: PartitionStatus) -> list[TopicPartition]:
    legal, illegal = sort_partitions(partitions, wanted, term.state.partition_status)
    for refused in illegal:
        term.state_change_log.log_refused(refused)
    return legal


def _mark(term: Remembers, partitions: Iterable[TopicPartition], status: PartitionStatus) -> None:
    for before, alike in term.state.set_partition_status(partitions, status).items():
        term.state_change_log.log_partitions(alike, before, status)
