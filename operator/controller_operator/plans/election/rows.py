"""The result for each partition of an election: the rows of its status, and their counts.

A row follows from the leaders before and now, regardless of the request's author. A result never changes.
An unclean election is requested only for partitions that had no live leader when the run began. A long status does not
list all rows, but those that wait for their result come first. So if the list has room for all of those, an unlisted
partition had a leader, and is left alone even if it has lost it since.
"""

from collections import Counter
from collections.abc import Iterable
from heapq import nsmallest
from typing import Final, NamedTuple

from controller_core.model.ids import NO_LEADER, BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_operator.resources.election import (
    ElectionCounts,
    ElectionPhase,
    ElectionResult,
    ElectionType,
    PartitionElection,
    PreferredElection,
)
from controller_operator.resources.schema import MAX_STATUS_ENTRIES


class Row(NamedTuple):
    """The content of a `PartitionElection`, as a tuple: building a model for every partition of a cluster is too
    slow."""

    tp: TopicPartition
    result: ElectionResult | None
    leader_before: BrokerId | None
    leader_after: BrokerId | None
    message: str | None = None
    isr_before: tuple[BrokerId, ...] | None = None

    def make_status(self) -> PartitionElection:
        """Return the row as a status shows it."""
        return PartitionElection(
            topic=self.tp.topic,
            partition=self.tp.partition,
            result=self.result,
            leader_before=self.leader_before,
            leader_after=self.leader_after,
            isr_before=self.isr_before,
            message=self.message,
        )


Rows = list[Row]

_RANKS: Final = {ElectionResult.FAILED: 0, None: 1, ElectionResult.PREFERRED_UNAVAILABLE: 2, ElectionResult.ELECTED: 3}
_GIVEN_UP: Final = {
    ElectionType.PREFERRED: (ElectionResult.FAILED, ElectionResult.PREFERRED_UNAVAILABLE),
    ElectionType.UNCLEAN: (ElectionResult.FAILED, ElectionResult.NOT_NEEDED),
}
_NOT_THERE: Final = "the cluster has no such partition"
_NEVER_LED: Final = "it never had a leader, so it has nothing to lose: it gets one when one of its replicas is alive"


def present_rows(election: PreferredElection, view: Snapshot) -> Rows:
    """Return the present row of every partition of the election."""
    is_running = election.status.phase is ElectionPhase.RUNNING
    before = {row.tp: row for row in map(_read_row, election.status.partitions)} if is_running else {}
    is_unclean = election.spec.election_type is ElectionType.UNCLEAN
    row_of = _make_unclean_row if is_unclean else _make_preferred_row
    was_led = is_unclean and is_running and _lists_all_that_wait(election)
    rows = []
    for tp in scope(election, view):
        known = before.get(tp)
        if known is not None and known.result is not None:
            rows.append(known)
        elif known is None and was_led:
            rows.append(_row(tp, view, ElectionResult.NOT_NEEDED))
        else:
            rows.append(row_of(tp, view, known))
    return rows


def scope(election: PreferredElection, view: Snapshot) -> Iterable[TopicPartition]:
    """Return the partitions of the election. A missing topic is represented by its partition 0."""
    if election.spec.partitions is not None:
        return [TopicPartition(each.topic, each.partition) for each in election.spec.partitions]
    names = sorted(view.topics) if election.spec.topics is None else election.spec.topics
    return [tp for name in names for tp in _list_partitions(name, view)]


def fail_row(row: Row, message: str) -> Row:
    """Return the row of a partition whose requested election had no effect."""
    return row._replace(result=ElectionResult.FAILED, leader_after=row.leader_before, message=message[:1024])


def gives_up(election: PreferredElection, rows: Rows) -> bool:
    """Return True if some partitions get no leader from this election, and the status does not say so yet."""
    is_running = election.status.phase is ElectionPhase.RUNNING
    before = election.status.partitions if is_running else ()
    recorded = {_read_row(row).tp for row in before if row.result is not None}
    given_up = _GIVEN_UP[election.spec.election_type]
    return any(row.result in given_up and row.tp not in recorded for row in rows)


def is_unclean(row: Row) -> bool:
    """Return True if a partition got a leader that was not in sync, so that it may have lost records."""
    isr = row.isr_before
    return row.result is ElectionResult.ELECTED and isr is not None and row.leader_after not in isr


def list_shown_rows(rows: Rows) -> tuple[PartitionElection, ...]:
    """Return the rows that a status lists, the most urgent ones first."""
    first = nsmallest(MAX_STATUS_ENTRIES, rows, key=lambda row: (_RANKS.get(row.result, 4), row.tp))
    return tuple(row.make_status() for row in first)


def count_results(election: PreferredElection, rows: Rows) -> ElectionCounts:
    """Return the counts of the results. Rows that a long status did not list count as elected only if newly elected."""
    number = Counter(row.result for row in rows)
    elected, not_needed = number[ElectionResult.ELECTED], number[ElectionResult.NOT_NEEDED]
    recorded = election.status.counts
    if election.status.phase is ElectionPhase.RUNNING and recorded is not None:
        elected, not_needed = elected + not_needed - recorded.not_needed, recorded.not_needed
    return ElectionCounts(
        total=len(rows),
        elected=elected,
        not_needed=not_needed,
        preferred_unavailable=number[ElectionResult.PREFERRED_UNAVAILABLE],
        failed=number[ElectionResult.FAILED],
    )


def _read_row(row: PartitionElection) -> Row:
    tp = TopicPartition(row.topic, row.partition)
    return Row(tp, row.result, row.leader_before, row.leader_after, row.message, row.isr_before)


def _lists_all_that_wait(election: PreferredElection) -> bool:
    first = sum(_RANKS.get(row.result, 4) <= _RANKS[None] for row in election.status.partitions)
    return first < MAX_STATUS_ENTRIES


def _list_partitions(name: TopicName, view: Snapshot) -> list[TopicPartition]:
    topic = view.topics.get(name)
    numbers = topic.partitions if topic else [PartitionId(0)]
    return [TopicPartition(name, number) for number in numbers]


def _make_preferred_row(tp: TopicPartition, view: Snapshot, before: Row | None) -> Row:
    assignment, state = view.assignment_of(tp), view.state_of(tp)
    if assignment is None:
        return _row(tp, view, ElectionResult.FAILED, before, message=_NOT_THERE)
    leader = state.leader_and_isr.leader if state else NO_LEADER
    isr = state.leader_and_isr.isr if state else ()
    preferred = assignment.replicas[0]
    if leader == preferred:
        return _row(tp, view, ElectionResult.ELECTED if before else ElectionResult.NOT_NEEDED, before)
    if preferred not in view.brokers or preferred not in isr:
        missing = "not alive" if preferred not in view.brokers else "not in sync"
        message = f"the preferred replica {preferred} is {missing}"
        return _row(tp, view, ElectionResult.PREFERRED_UNAVAILABLE, before, message=message)
    return _row(tp, view, None, before)


def _make_unclean_row(tp: TopicPartition, view: Snapshot, before: Row | None) -> Row:
    """Return the row of an unclean election. The ISR of a partition without a leader holds the brokers with all
    records."""
    assignment, state = view.assignment_of(tp), view.state_of(tp)
    if assignment is None or state is None:
        return _row(tp, view, ElectionResult.FAILED, before, message=_NEVER_LED if assignment else _NOT_THERE)
    leader, isr = state.leader_and_isr.leader, state.leader_and_isr.isr
    if before is None and leader in view.brokers:
        return _row(tp, view, ElectionResult.NOT_NEEDED)
    isr_before = isr if before is None or before.isr_before is None else before.isr_before
    if leader in view.brokers:
        row = _row(tp, view, ElectionResult.ELECTED, before, message=_loss(leader, isr_before))
    elif view.brokers.keys().isdisjoint(assignment.replicas):
        message = f"none of its replicas {[*assignment.replicas]} is alive"
        row = _row(tp, view, ElectionResult.FAILED, before, message=message)
    else:
        row = _row(tp, view, None, before)
    return row._replace(isr_before=isr_before)


def _loss(leader: BrokerId, isr: tuple[BrokerId, ...]) -> str:
    if leader in isr:
        return f"broker {leader} was in sync: nothing is lost"
    return f"broker {leader} was not in sync: records that only {[*isr]} had may be lost"


def _row(
    tp: TopicPartition,
    view: Snapshot,
    result: ElectionResult | None,
    before: Row | None = None,
    *,
    message: str | None = None,
) -> Row:
    """Return a row with the present leader and the former one. Without a former row both are the present one."""
    state = view.state_of(tp)
    is_there = view.assignment_of(tp) is not None
    leader = (state.leader_and_isr.leader if state else NO_LEADER) if is_there else None
    return Row(
        tp=tp,
        result=result,
        leader_before=leader if before is None else before.leader_before,
        leader_after=leader if result is not None else None,
        message=message,
    )
