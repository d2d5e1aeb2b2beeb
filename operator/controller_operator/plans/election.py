"""PreferredElection: asks once for the election of preferred leaders, and shows what became of each partition.

`phase: Running` with the leaders of that moment is written before the request is. A partition that its preferred replica
leads afterwards was elected, whoever asked; one that it does not lead is asked for again unless the request is known
to have been dealt with. Asking twice for a partition changes nothing, so a restart repeats nothing that matters.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from controller_core.model.ids import NO_LEADER, BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.wording import listed
from controller_operator.kafka.actions import SubmitPreferredElection
from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.plans.outcome import (
    Context,
    Notice,
    Plan,
    Step,
    Verdict,
    conditions,
)
from controller_operator.resources.conditions import Reason
from controller_operator.resources.election import (
    ElectionCounts,
    ElectionPhase,
    ElectionResult,
    PartitionElection,
    PreferredElection,
    PreferredElectionStatus,
)
from controller_operator.resources.schema import MAX_STATUS_ENTRIES

_RANKS: Final = {ElectionResult.FAILED: 0, None: 1, ElectionResult.PREFERRED_UNAVAILABLE: 2, ElectionResult.ELECTED: 3}

Rows = list[PartitionElection]


def plan_election(election: PreferredElection, view: ClusterView, context: Context) -> Plan[PreferredElectionStatus]:
    """One more look at an election that has not ended: what to ask for, and what became of each partition."""
    phase = election.status.phase
    rows = list(_rows(election, view))
    pending = [_key(row) for row in rows if row.result is None]
    if phase is not ElectionPhase.RUNNING and (missing := _missing(rows, view)):
        return _plan(election, ElectionPhase.PENDING, rows, missing, context)
    if not pending:
        return _finish(election, rows, context)
    if phase is not ElectionPhase.RUNNING:
        return _begin(election, rows, pending, view, context)
    return _follow(election, rows, pending, view, context)


def _missing(rows: Rows, view: ClusterView) -> Verdict | None:
    """What an election waits for: whoever applies topics and their election at once does not say which comes first."""
    if topics := sorted({row.topic for row in rows} - view.topics.keys()):
        return Verdict.working(Reason.UNKNOWN_TOPIC, f"the cluster has no topic {listed(topics)}")
    if missing := [f"{row.topic}-{row.partition}" for row in rows if view.assignment_of(_key(row)) is None]:
        return Verdict.working(Reason.UNKNOWN_PARTITION, f"the cluster has no partition {listed(missing)}")
    return None


def _begin(
    election: PreferredElection, rows: Rows, pending: list[TopicPartition], view: ClusterView, context: Context
) -> Plan[PreferredElectionStatus]:
    wait = _wait(view)
    if wait is not None:
        return _plan(election, ElectionPhase.PENDING, rows, wait, context)
    verdict = Verdict.working(Reason.PROGRESSING, f"asking for the election of {len(pending)} leaders")
    return _plan(election, ElectionPhase.RUNNING, rows, verdict, context, (_request(pending, context),))


def _follow(
    election: PreferredElection, rows: Rows, pending: list[TopicPartition], view: ClusterView, context: Context
) -> Plan[PreferredElectionStatus]:
    asked = {tp for step in context.done if isinstance(step, SubmitPreferredElection) for tp in step.partitions}
    is_ours = view.preferred_election is not None and set(pending) & set(view.preferred_election.partitions)
    if is_ours:
        verdict = Verdict.working(Reason.PROGRESSING, f"{len(pending)} of {len(rows)} elections are under way")
        return _plan(election, ElectionPhase.RUNNING, rows, verdict, context)
    if not context.is_view_fresh:
        verdict = Verdict.working(Reason.PROGRESSING, f"looking at {len(pending)} of {len(rows)} partitions")
        return _plan(election, ElectionPhase.RUNNING, rows, verdict, context, needs_fresh_view=True)
    rows = [_not_elected(row) if row.result is None and _key(row) in asked else row for row in rows]
    unasked = [tp for tp in pending if tp not in asked]
    if not unasked:
        return _finish(election, rows, context)
    wait = _wait(view)
    verdict = wait or Verdict.working(Reason.PROGRESSING, f"asking for the election of {len(unasked)} leaders")
    steps = () if wait else (_request(unasked, context),)
    return _plan(election, ElectionPhase.RUNNING, rows, verdict, context, steps)


def _finish(election: PreferredElection, rows: Rows, context: Context) -> Plan[PreferredElectionStatus]:
    counts = _counts(election, rows)
    message = f"{counts.elected} elected, {counts.not_needed} not needed, {counts.preferred_unavailable} unavailable"
    if counts.failed:
        message = f"{counts.failed} of {counts.total} elections failed; {message}"
        notices = (Notice(reason="ElectionFailed", message=message, is_warning=True),)
        verdict = Verdict.failed(Reason.PARTITIONS_FAILED, message)
        return _plan(election, ElectionPhase.FAILED, rows, verdict, context, notices=notices)
    notices = (Notice(reason="ElectionCompleted", message=message),)
    return _plan(election, ElectionPhase.COMPLETED, rows, Verdict.completed(message), context, notices=notices)


def _plan(
    election: PreferredElection,
    phase: ElectionPhase,
    rows: Rows,
    verdict: Verdict,
    context: Context,
    steps: tuple[Step, ...] = (),
    *,
    notices: tuple[Notice, ...] = (),
    needs_fresh_view: bool = False,
) -> Plan[PreferredElectionStatus]:
    has_begun = phase is not ElectionPhase.PENDING
    shown = sorted(rows, key=lambda row: (_RANKS.get(row.result, 4), row.topic, row.partition))
    return Plan(
        status=PreferredElectionStatus(
            observed_generation=election.metadata.generation,
            conditions=conditions(verdict, election.status, election.metadata, context.now),
            phase=phase,
            start_time=election.status.start_time or (context.now if has_begun else None),
            completion_time=context.now if phase.is_final else None,
            counts=_counts(election, rows),
            partitions=tuple(shown[:MAX_STATUS_ENTRIES]),
        ),
        steps=steps,
        notices=notices,
        look_again_in_s=election.spec.ttl_seconds_after_finished if phase.is_final else None,
        needs_fresh_view=needs_fresh_view,
    )


def _wait(view: ClusterView) -> Verdict | None:
    if view.controller is None:
        return Verdict.working(Reason.NO_CONTROLLER, "no controller holds the cluster, so nothing would be elected")
    if view.preferred_election is not None:
        return Verdict.working(Reason.PROGRESSING, "another preferred election runs; this one begins after it")
    return None


def _rows(election: PreferredElection, view: ClusterView) -> Iterator[PartitionElection]:
    """Every partition the election is for: what became of it follows from the leader before and now."""
    before = {_key(row): row for row in election.status.partitions}
    is_running = election.status.phase is ElectionPhase.RUNNING
    for tp in _scope(election, view):
        known = before.get(tp)
        if is_running and known is not None and known.result is not None:
            yield known
        else:
            yield _row(tp, view, known if is_running else None)


def _row(tp: TopicPartition, view: ClusterView, before: PartitionElection | None) -> PartitionElection:
    assignment, state = view.assignment_of(tp), view.state_of(tp)
    leader_before = before.leader_before if before else None
    if assignment is None:
        return _result(tp, ElectionResult.FAILED, leader_before, None, "the cluster has no such partition")
    leader = state.leader_and_isr.leader if state else NO_LEADER
    isr = state.leader_and_isr.isr if state else ()
    preferred = assignment.replicas[0]
    if leader == preferred:
        result = ElectionResult.ELECTED if before else ElectionResult.NOT_NEEDED
        return _result(tp, result, leader_before if before else leader, leader)
    if preferred not in view.brokers or preferred not in isr:
        missing = "not alive" if preferred not in view.brokers else "not in sync"
        message = f"the preferred replica {preferred} is {missing}"
        return _result(
            tp,
            ElectionResult.PREFERRED_UNAVAILABLE,
            leader if leader_before is None else leader_before,
            leader,
            message,
        )
    return _result(tp, None, leader_before if before else leader, None)


def _result(
    tp: TopicPartition,
    result: ElectionResult | None,
    leader_before: BrokerId | None,
    leader_after: BrokerId | None,
    message: str | None = None,
) -> PartitionElection:
    return PartitionElection(
        topic=tp.topic,
        partition=tp.partition,
        result=result,
        leader_before=leader_before,
        leader_after=leader_after,
        message=message,
    )


def _not_elected(row: PartitionElection) -> PartitionElection:
    message = "the controller took the request and did not elect the preferred replica"
    return row.model_copy(
        update={"result": ElectionResult.FAILED, "leader_after": row.leader_before, "message": message}
    )


def _scope(election: PreferredElection, view: ClusterView) -> Iterable[TopicPartition]:
    """The partitions that the election is for; a topic that is not there stands for its partition 0, as missing."""
    if election.spec.partitions is not None:
        return [TopicPartition(each.topic, each.partition) for each in election.spec.partitions]
    names = sorted(view.topics) if election.spec.topics is None else election.spec.topics
    return [tp for name in names for tp in _of_topic(name, view)]


def _of_topic(name: TopicName, view: ClusterView) -> list[TopicPartition]:
    topic = view.topics.get(name)
    numbers = topic.partitions if topic else [PartitionId(0)]
    return [TopicPartition(name, number) for number in numbers]


def _request(partitions: list[TopicPartition], context: Context) -> SubmitPreferredElection:
    """As many of the partitions as fit one request; the next one follows when it has been dealt with."""
    fitting = context.limits.fitting(partitions, lambda chosen: SubmitPreferredElection(partitions=chosen))
    return SubmitPreferredElection(partitions=fitting)


def _counts(election: PreferredElection, rows: Rows) -> ElectionCounts:
    """The results in numbers. Rows that a long status did not list count as elected only if they were not so before."""

    def number(result: ElectionResult) -> int:
        return sum(row.result is result for row in rows)

    elected, not_needed = number(ElectionResult.ELECTED), number(ElectionResult.NOT_NEEDED)
    recorded = election.status.counts
    if election.status.phase is ElectionPhase.RUNNING and recorded is not None:
        elected, not_needed = elected + not_needed - recorded.not_needed, recorded.not_needed
    return ElectionCounts(
        total=len(rows),
        elected=elected,
        not_needed=not_needed,
        preferred_unavailable=number(ElectionResult.PREFERRED_UNAVAILABLE),
        failed=number(ElectionResult.FAILED),
    )


def _key(row: PartitionElection) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)
