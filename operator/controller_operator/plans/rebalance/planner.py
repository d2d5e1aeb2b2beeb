"""RebalancePlan: runs once (`run`), or never ends and runs whenever it is due (`standing`)."""

from controller_core.model.snapshot import Snapshot
from controller_operator.plans.outcome import Context, Plan, plan_paused
from controller_operator.plans.rebalance.run import ALONE, Surroundings, plan_run
from controller_operator.plans.rebalance.standing import plan_standing
from controller_operator.resources.rebalancing.rebalance_plan import RebalancePlan, RebalancePlanStatus


def decide(
    resource: RebalancePlan, view: Snapshot, context: Context, around: Surroundings = ALONE
) -> Plan[RebalancePlanStatus]:
    """Return the decision about a plan that has not ended.

    A deleted one has nothing to undo: its PartitionReassignments are deleted with it, and roll back what is unfinished."""
    if resource.metadata.deletion_timestamp is not None:
        return Plan(status=resource.status)
    if resource.is_paused:
        return plan_paused(resource, context)
    if resource.is_standing:
        return plan_standing(resource, view, context, around)
    return plan_run(resource, view, context, around)
