"""Leaders after a move: a new order of the same replicas moves nothing, so somebody has to ask for the new first replica.

Kafka keeps the leader of a partition as long as it is among the replicas. Whoever writes the same brokers in another order
wants the first one to lead, so the move has it elected. After other moves the leader stays, and the message says so.
"""

from collections.abc import Iterable

from controller_core.model.ids import TopicPartition
from controller_core.model.wording import listed
from controller_operator.kafka.actions import SubmitPreferredElection
from controller_operator.kafka.cluster_view import ClusterView
from controller_operator.plans.outcome import Context
from controller_operator.resources.reassignment import MovingPartition, ReassignmentStep


def elect_reordered(
    rows: Iterable[MovingPartition], view: ClusterView, context: Context
) -> SubmitPreferredElection | None:
    """Return the request for the first replicas of partitions whose replicas have got a new order; None if none is due.

    It is made once in a look. If another election runs, `describe_leaders` says what is left to a person."""
    if view.controller is None or view.preferred_election is not None or _was_asked(context):
        return None
    wanted = [_tp(row) for row in rows if _is_reordered(row) and _is_electable(row, view)]
    fitting = context.limits.fitting(wanted, lambda chosen: SubmitPreferredElection(partitions=chosen))
    return SubmitPreferredElection(partitions=fitting) if fitting else None


def describe_leaders(rows: Iterable[MovingPartition], view: ClusterView, context: Context) -> str:
    """Return what a finished move says of leaders after its other words; empty if every first replica leads."""
    asked = {tp for step in context.done if isinstance(step, SubmitPreferredElection) for tp in step.partitions}
    others = [_tp(row) for row in rows if _tp(row) not in asked and _is_electable(row, view)]
    words = f"; the controller was asked to elect the first replicas of {listed(sorted(asked))}" if asked else ""
    if others:
        words += (
            f"; another replica than the first one leads {listed(others)}, as before the move: a PreferredElection changes "
            "that"
        )
    return words


def _was_asked(context: Context) -> bool:
    return bool(context.elections) or any(isinstance(step, SubmitPreferredElection) for step in context.done)


def _is_reordered(row: MovingPartition) -> bool:
    before, after = row.original_replicas, row.target_replicas
    return before != after and set(before) == set(after)


def _is_electable(row: MovingPartition, view: ClusterView) -> bool:
    """Return True if the partition has got its replicas, and the first one is in sync and does not lead."""
    state = view.state_of(_tp(row))
    if row.step is not ReassignmentStep.DONE or state is None:
        return False
    first = row.target_replicas[0]
    return state.leader_and_isr.leader != first and first in state.leader_and_isr.isr


def _tp(row: MovingPartition) -> TopicPartition:
    return TopicPartition(row.topic, row.partition)
