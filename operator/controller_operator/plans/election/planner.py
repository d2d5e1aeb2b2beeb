"""PreferredElection: runs once, or on a schedule."""

from controller_core.model.snapshot import Snapshot
from controller_operator.plans.election.run import plan_run
from controller_operator.plans.election.schedule import plan_scheduled
from controller_operator.plans.outcome import Context, Plan
from controller_operator.resources.election import PreferredElection, PreferredElectionStatus


def plan_election(election: PreferredElection, view: Snapshot, context: Context) -> Plan[PreferredElectionStatus]:
    """Return the plan for an election that has not ended."""
    plan = plan_run if election.spec.schedule is None else plan_scheduled
    return plan(election, view, context)
