"""The decision about an object of any kind, as a pure function of the object and its situation.

The reconciler carries decisions out. The webhook only reads their conditions, so both have the same rules.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from controller_core.model.snapshot import Snapshot
from controller_operator.kubernetes.object_store import AnyResource
from controller_operator.plans.cluster import planner as of_cluster
from controller_operator.plans.cluster_change import (
    ClusterChange,
    begin_again,
    end_run,
    explain_leaving,
    find_obstacle,
    find_own_change,
    refuse_object,
)
from controller_operator.plans.election import planner as of_election
from controller_operator.plans.feature_set import planner as of_features
from controller_operator.plans.next_steps import next_steps
from controller_operator.plans.outcome import Context, FinalizerWish, Plan, make_status, plan_paused
from controller_operator.plans.permission import Permission
from controller_operator.plans.reassignment import planner as of_move
from controller_operator.plans.rebalance import planner as of_rebalance
from controller_operator.plans.topic import planner as of_topic
from controller_operator.resources import (
    FeatureSet,
    KafkaCluster,
    KafkaTopic,
    PartitionReassignment,
    PreferredElection,
    RebalancePlan,
)
from controller_operator.resources.common import FINALIZER, Status


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Everything that a decision may know besides the object."""

    cluster: KafkaCluster
    view: Snapshot
    permission: Permission
    context: Context
    around: Any
    """The other objects that matter: the `Surroundings` of the kind."""


_DECIDE: Final[Mapping[str, Callable[[Any, Snapshot, Context, Any], Plan[Status]]]] = {
    KafkaCluster.definition.kind: of_cluster.decide,
    KafkaTopic.definition.kind: of_topic.decide,
    PartitionReassignment.definition.kind: of_move.decide,
    PreferredElection.definition.kind: of_election.decide,
    FeatureSet.definition.kind: of_features.decide,
    RebalancePlan.definition.kind: of_rebalance.decide,
}
LEFTOVERS: Final[Mapping[str, str]] = {
    KafkaTopic.definition.kind: "the topic, if there is one, stays",
    PartitionReassignment.definition.kind: "the move, if it runs, goes on, and its limit stays",
    FeatureSet.definition.kind: "the finalized levels, if there are any, stay",
}
"""The leftovers of an object that is released without its cluster. The other kinds have nothing to undo."""


def decide(resource: AnyResource, seen: Situation) -> Plan[Status]:
    """Return the decision about an object. That about a paused one shows the next steps without the pause."""
    plan, words = _decide(resource, seen), None
    is_deleted = resource.metadata.deletion_timestamp is not None
    if resource.is_paused and not is_deleted and not isinstance(resource, KafkaCluster):
        found = next_steps(
            resource, lambda unpaused, context: decide_permitted(unpaused, replace(seen, context=context)), seen.context
        )
        plan, words = replace(plan, look_again_in_s=found.look_again_in_s), found.words
    if words == plan.status.next_steps:
        return plan
    return replace(plan, status=plan.status.model_copy(update={"next_steps": words}))


def decide_permitted(resource: AnyResource, seen: Situation) -> Plan[Status]:
    """Return the decision about an object, as far as its namespace has the right to it."""
    plan = _decide(resource, seen)
    refusal = seen.permission.refuse_steps(plan.steps)
    return Plan(status=make_status(refusal, resource, seen.context.now)) if refusal else plan


def _decide(resource: AnyResource, seen: Situation) -> Plan[Status]:
    """Decide over the Kafka cluster that answers, unless the object was carried out in another one.

    The status remembers the cluster before anything is done there."""
    decide_kind = _DECIDE[resource.definition.kind]
    if isinstance(resource, KafkaCluster):
        return decide_kind(resource, seen.view, seen.context, seen.around)
    present = seen.view.cluster_id
    if obstacle := find_obstacle(resource, seen.cluster, present):
        return _hold_back(resource, seen, obstacle)
    change = find_own_change(resource, seen.cluster, present)
    if change is not None:
        if resource.is_paused:
            return plan_paused(resource, seen.context)
        if ended := end_run(resource, change, seen.context):
            return ended
        resource = begin_again(resource)
    plan = decide_kind(resource, seen.view, seen.context, seen.around)
    if resource.metadata.deletion_timestamp is not None or present is None:
        return plan
    return replace(plan, status=plan.status.model_copy(update={"cluster_id": present}))


def _hold_back(resource: AnyResource, seen: Situation, change: ClusterChange) -> Plan[Status]:
    """Return the decision about an object for which nothing may be done in the Kafka cluster that answers."""
    if resource.metadata.deletion_timestamp is not None:
        if FINALIZER not in resource.metadata.finalizers:
            return Plan(status=resource.status)
        notice = explain_leaving(LEFTOVERS.get(resource.definition.kind), seen.cluster, change)
        return Plan(status=resource.status, finalizer=FinalizerWish.RELEASE, notices=(notice,))
    if resource.is_paused:
        return plan_paused(resource, seen.context)
    return Plan(status=make_status(refuse_object(resource, seen.cluster, change), resource, seen.context.now))
