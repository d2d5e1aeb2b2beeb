"""The approval of a move (`plans.consent.approval`).

The plan's hash covers all partitions with their old and new replicas, and the log directories that the spec names. If
the cluster changes before the first one moves, the plan gets another hash, and the approval of the former plan no
longer counts.
"""

from collections.abc import Mapping

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count
from controller_operator.plans.consent.approval import explain_missing_approval, hash_plan
from controller_operator.plans.outcome import Verdict
from controller_operator.resources.approval import Approval
from controller_operator.resources.reassignment import PartitionReassignment

Targets = Mapping[TopicPartition, tuple[BrokerId, ...]]


def add_plan_hash(move: PartitionReassignment, wanted: Targets, view: Snapshot) -> PartitionReassignment:
    """Return the object with the hash of its moves in the status, if it needs approval and anything would move."""
    found = _plan_hash(move, wanted, view) if wanted and move.spec.approval is Approval.REQUIRED else None
    return move.model_copy(update={"status": move.status.model_copy(update={"plan_hash": found})})


def find_missing_approval(move: PartitionReassignment, wanted: Targets) -> Verdict | None:
    """Return why the move may not begin; None if it needs no approval, or this very plan is approved."""
    what = f"the move of {format_count(len(wanted), 'partition')}"
    return explain_missing_approval(what, move.status.plan_hash, move.spec.approved_plan)


def _plan_hash(move: PartitionReassignment, wanted: Targets, view: Snapshot) -> str:
    log_dirs = {TopicPartition(each.topic, each.partition): each.log_dirs for each in move.targets if each.log_dirs}
    return hash_plan(
        [
            (tp.topic, tp.partition, _present(tp, view), [*to], *([named] if (named := log_dirs.get(tp)) else []))
            for tp, to in sorted(wanted.items())
        ]
    )


def _present(tp: TopicPartition, view: Snapshot) -> list[int]:
    assignment = view.assignment_of(tp)
    return [*assignment.replicas] if assignment else []
