"""Leaders after a move. A new order of the same replicas moves nothing, so the operator requests the new first replica.

Kafka keeps the leader of a partition as long as it is among the replicas. A user who lists the same brokers in another
order wants the first one to lead, so the move requests its election. After other moves the leader stays, and the
message says so.
"""

from collections.abc import Iterable

from controller_core.model.ids import TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count, list_some
from controller_operator.kafka.actions import SubmitPreferredElection
from controller_operator.plans.outcome import Context, Verdict
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import MovingPartition, ReassignmentStep


def elect_reordered(
    rows: Iterable[MovingPartition], view: Snapshot, context: Context
) -> SubmitPreferredElection | None:
    """Return the election of the first replicas of partitions with a new order of replicas; None if none is due.

    An election that the controller accepted in this reconciliation is not repeated: `describe_leaders` has its
    result."""
    if any(isinstance(step, SubmitPreferredElection) for step in context.done):
        return None
    wanted = [_tp(row) for row in rows if _is_reordered(row) and _is_electable(row, view)]
    fitting = context.limits.choose_fitting(wanted, lambda chosen: SubmitPreferredElection(partitions=chosen))
    return SubmitPreferredElection(partitions=fitting) if fitting else None


def plan_election(election: SubmitPreferredElection, view: Snapshot, context: Context) -> tuple[Verdict, bool]:
    """Return the verdict on a move whose last step is an election, and whether the election can be requested now."""
    leaders = format_count(len(election.partitions), "leader")
    message = f"asking for the election of {leaders}, because replicas have a new order"
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
    """Return the words about leaders for a finished move; empty if every first replica leads."""
    refused = {tp for reply in context.elections for tp, _ in reply.refused}
    in_sync = [row for row in rows if _is_first_in_sync(row, view)]
    elected = [_tp(row) for row in in_sync if _is_reordered(row) and _tp(row) not in refused]
    others = [_tp(row) for row in in_sync if _is_electable(row, view) and _tp(row) not in elected]
    words = f"; the first replica of the new order is elected as leader of {list_some(elected)}" if elected else ""
    if others:
        words += (
            f"; another replica than the first one leads {list_some(others)}, as before the move: a PreferredElection "
            "changes that"
        )
    return words


def _is_reordered(row: MovingPartition) -> bool:
    before, after = row.original_replicas, row.target_replicas
    return before != after and set(before) == set(after)


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
