"""Leaders after a move. Kafka keeps the leader of a partition as long as it is among the replicas.

A user, or a plan, who lists another broker first wants it to lead, so the move requests its election. If the first
replica is the same as before, the leader stays, and the message says so.
"""

from collections.abc import Iterable

from controller_core.model.ids import TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count, list_some
from controller_operator.kafka.actions import SubmitPreferredElection
from controller_operator.plans.outcome import Context, Verdict
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import MovingPartition, ReassignmentStep


def elect_new_first(
    rows: Iterable[MovingPartition], view: Snapshot, context: Context
) -> SubmitPreferredElection | None:
    """Return the election of the first replicas of partitions in which they are new ones; None if none is due.

    An election that the controller accepted in this reconciliation is not repeated: `describe_leaders` has its
    result."""
    if any(isinstance(step, SubmitPreferredElection) for step in context.done):
        return None
    wanted = [_tp(row) for row in rows if _has_new_first(row) and _is_electable(row, view)]
    fitting = context.limits.choose_fitting(wanted, lambda chosen: SubmitPreferredElection(partitions=chosen))
    return SubmitPreferredElection(partitions=fitting) if fitting else None


def plan_election(election: SubmitPreferredElection, view: Snapshot, context: Context) -> tuple[Verdict, bool]:
    """Return the verdict on a move whose last step is an election, and whether the election can be requested now."""
    leaders = format_count(len(election.partitions), "leader")
    message = f"asking for the election of {leaders}, because other replicas come first now"
    trouble = next((reply.trouble for reply in context.elections if reply.trouble), None)
    if view.controller is None:
        return Verdict.make_working(Reason.NO_CONTROLLER, f"{message}: the cluster has no controller"), False
    if trouble is not None:
        return Verdict.make_working(
            Reason.BROKERS_UNAVAILABLE, f"{message}: the controller gave no answer: {trouble}"
        ), False
    if view.preferred_election is not None:
        return Verdict.make_working(
            Reason.PROGRESSING, f"{message}: another election runs, and this one begins after it"
        ), False
    return Verdict.make_working(Reason.PROGRESSING, message), True


def describe_leaders(rows: Iterable[MovingPartition], view: Snapshot, context: Context) -> str:
    """Return the words about the leaders that are elected, and about partitions that another replica leads."""
    asked = {tp for step in context.done if isinstance(step, SubmitPreferredElection) for tp in step.partitions}
    asked -= {tp for reply in context.elections for tp, _ in reply.refused}
    in_sync = [row for row in rows if _is_first_in_sync(row, view)]
    others = [_tp(row) for row in in_sync if _is_electable(row, view) and _tp(row) not in asked]
    elected = [_tp(row) for row in in_sync if _is_reordered(row) and _tp(row) not in others]
    words = f"; the first replica is elected as leader of {list_some(elected)}" if elected else ""
    if others:
        words += (
            f"; another replica than the first one leads {list_some(others)}, as before the move: a PreferredElection "
            "changes that"
        )
    return words


def _is_reordered(row: MovingPartition) -> bool:
    before, after = row.original_replicas, row.target_replicas
    return before != after and set(before) == set(after)


def _has_new_first(row: MovingPartition) -> bool:
    return _is_reordered(row) or row.original_replicas[:1] != row.target_replicas[:1]


def _is_electable(row: MovingPartition, view: Snapshot) -> bool:
    """Return True if the partition has got its replicas, and the first one is in sync and does not lead."""
    state = view.state_of(_tp(row))
    return state is not None and _is_first_in_sync(row, view) and state.leader_and_isr.leader != row.target_replicas[0]


def _is_first_in_sync(row: MovingPartition, view: Snapshot) -> bool:
    state = view.state_of(_tp(row))
    if row.step is not ReassignmentStep.DONE or state is None:
        return False
    return row.target_replicas[0] in state.leader_and_isr.isr


def _tp(row: MovingPartition) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)
