"""Leaders after a move: a new order of the same replicas moves nothing, so somebody has to ask for the new first replica.

Kafka keeps the leader of a partition as long as it is among the replicas. Whoever writes the same brokers in another order
wants the first one to lead, so the move has it elected. After other moves the leader stays, and the message says so.
"""

from collections.abc import Iterable

from controller_core.model.ids import TopicPartition
from controller_core.model.wording import format_count, list_some
from controller_operator.kafka.actions import SubmitPreferredElection
from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.plans.outcome import Context, Verdict
from controller_operator.resources.conditions import Reason
from controller_operator.resources.reassignment import MovingPartition, ReassignmentStep


def elect_reordered(
    rows: Iterable[MovingPartition], view: ClusterView, context: Context
) -> SubmitPreferredElection | None:
    """Return the request for the first replicas of partitions whose replicas have got a new order; None if none is due.

    What the controller has taken in this look is not asked for again: `describe_leaders` says what came of it."""
    if any(isinstance(step, SubmitPreferredElection) for step in context.done):
        return None
    wanted = [_tp(row) for row in rows if _is_reordered(row) and _is_electable(row, view)]
    fitting = context.limits.fitting(wanted, lambda chosen: SubmitPreferredElection(partitions=chosen))
    return SubmitPreferredElection(partitions=fitting) if fitting else None


def plan_election(election: SubmitPreferredElection, view: ClusterView, context: Context) -> tuple[Verdict, bool]:
    """Return what a move says whose last step is an election, and whether it can be asked for now."""
    message = (
        f"asking for the election of {format_count(len(election.partitions), 'leader')}, as replicas have a new order"
    )
    trouble = next((reply.trouble for reply in context.elections if reply.trouble), None)
    if view.controller is None:
        return Verdict.working(Reason.NO_CONTROLLER, f"{message}: no controller holds the cluster"), False
    if trouble is not None:
        return Verdict.working(
            Reason.BROKERS_UNAVAILABLE, f"{message}: the controller gave no answer: {trouble}"
        ), False
    if view.preferred_election is not None:
        return Verdict.working(
            Reason.PROGRESSING, f"{message}: another election runs, and this one begins after it"
        ), False
    return Verdict.working(Reason.PROGRESSING, message), True


def describe_leaders(rows: Iterable[MovingPartition], view: ClusterView, context: Context) -> str:
    """Return what a finished move says of leaders after its other words; empty if every first replica leads."""
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


def _is_electable(row: MovingPartition, view: ClusterView) -> bool:
    """Return True if the partition has got its replicas, and the first one is in sync and does not lead."""
    state = view.state_of(_tp(row))
    return state is not None and _is_first_in_sync(row, view) and state.leader_and_isr.leader != row.target_replicas[0]


def _is_first_in_sync(row: MovingPartition, view: ClusterView) -> bool:
    state = view.state_of(_tp(row))
    if row.step is not ReassignmentStep.DONE or state is None:
        return False
    return row.target_replicas[0] in state.leader_and_isr.isr


def _tp(row: MovingPartition) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)
