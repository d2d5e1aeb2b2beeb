"""The differences between the kinds: the planner of each, and its leftovers if it is released without its cluster."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

from controller_core.model.ids import TopicName
from controller_operator.kafka.requests.features import can_be_asked
from controller_operator.kafka.throttle_steps import RemoveThrottle
from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, key_of_resource
from controller_operator.plans.cluster import plan_cluster
from controller_operator.plans.cluster_change import (
    ClusterChange,
    begin_again,
    end_run,
    explain_leaving,
    find_obstacle,
    find_own_change,
    refuse_cluster,
    refuse_object,
)
from controller_operator.plans.cluster_news import Told, find_news
from controller_operator.plans.election.planner import plan_election
from controller_operator.plans.feature_set.planner import plan_feature_set
from controller_operator.plans.next_steps import next_steps
from controller_operator.plans.outcome import Context, FinalizerWish, Plan, Verdict
from controller_operator.plans.reassignment.planner import plan_reassignment
from controller_operator.plans.reassignment.turns import apply_requests
from controller_operator.plans.topic.planner import Surroundings, plan_topic
from controller_operator.plans.upkeep.ownerless_limits import plan_ownerless_limits
from controller_operator.reconciling.access import ClusterAccess, Granted
from controller_operator.reconciling.measuring.cluster_meter import ClusterMeter, Findings
from controller_operator.reconciling.measuring.move_meter import MoveMeter
from controller_operator.reconciling.object_writer import make_status
from controller_operator.resources import FeatureSet, KafkaCluster, KafkaTopic, PartitionReassignment, PreferredElection
from controller_operator.resources.cluster import KafkaClusterStatus
from controller_operator.resources.common import FINALIZER, Status

_ASKING: Final = timedelta(minutes=1)
"""Time after which a request is no longer on its way, whatever its result."""
_OBJECTS_WAIT_S: Final = 15.0
"""Seconds between reconciliations of a KafkaCluster whose objects were carried out in another Kafka cluster."""


class KindHandler(Protocol):
    """The handler of one kind. `resource` is always an object of it."""

    def plan(self, resource: Any, grant: Granted, context: Context) -> Plan[Status]:
        """Return the plan for an object over its cluster."""
        ...

    @property
    def leftover(self) -> str | None:
        """The leftovers if an object is released without its cluster; None for a kind with nothing to undo."""
        ...


class ClusterHandler:
    """KafkaCluster. The last news of each is kept in memory only, because nothing depends on it."""

    leftover = None

    def __init__(
        self, store: ObjectStore, access: ClusterAccess, meter: ClusterMeter, namespaces: Collection[str]
    ) -> None:
        """`namespaces`: those whose objects are known; empty: all."""
        self._store = store
        self._access = access
        self._meter = meter
        self._namespaces = namespaces
        self._told: dict[str, Told] = {}

    def plan(self, resource: KafkaCluster, grant: Granted, context: Context) -> Plan[Status]:
        if paused := _plan_paused(resource, context):
            return paused
        cluster_id = grant.view.cluster_id
        refusal = refuse_cluster(resource, cluster_id, self._store.count_carried_out(key_of_resource(resource)))
        decider = self._access.find_decider(resource)
        findings = self._findings(resource, context)
        plan = plan_cluster(
            resource,
            grant.view,
            context,
            decider=decider,
            refusal=refusal,
            directories=findings.directories,
            limits=plan_ownerless_limits(
                resource.status.ownerless_limits, findings.limits, grant.view, self._is_owned, context
            )
            if refusal is None
            else None,
        )
        if refusal is not None:
            return replace(plan, look_again_in_s=_OBJECTS_WAIT_S)
        uid = resource.metadata.uid
        is_same = find_own_change(resource, resource, cluster_id) is None
        told, status = (self._told.get(uid), resource.status) if is_same else (None, KafkaClusterStatus())
        news = find_news(told, status, grant.view, context.now)
        present = {each.metadata.uid for each in self._store.clusters()}
        self._told = {known: told for known, told in self._told.items() if known in present} | {uid: news.told}
        pauses = [each for each in (plan.look_again_in_s, news.look_again_in_s) if each is not None]
        return replace(plan, notices=(*news.notices, *plan.notices), look_again_in_s=min(pauses, default=None))

    def _findings(self, resource: KafkaCluster, context: Context) -> Findings:
        key, removed = key_of_resource(resource), [each for each in context.done if isinstance(each, RemoveThrottle)]
        self._meter.forget_limits(key, {each.owner for each in removed})
        return self._meter.findings_of(key, resource.metadata.uid)

    def _is_owned(self, owner: str) -> bool:
        """Return True if the object that set a throttle exists and has not ended, or if that cannot be known here."""
        namespace, _, rest = owner.partition("/")
        name, _, uid = rest.rpartition("/")
        if not name or (self._namespaces and namespace not in self._namespaces):
            return True
        stored = self._store.get(Key(PartitionReassignment.definition.kind, namespace, name))
        if stored is None or stored.uid != uid:
            return False
        return not isinstance(stored.resource, PartitionReassignment) or stored.resource.ending is None


class ElectionHandler:
    """PreferredElection."""

    leftover = None

    def plan(self, resource: PreferredElection, grant: Granted, context: Context) -> Plan[Status]:
        return _plan_paused(resource, context) or plan_election(resource, grant.view, context)


class TopicHandler:
    """KafkaTopic."""

    leftover = "the topic, if there is one, stays"

    def __init__(self, store: ObjectStore, access: ClusterAccess) -> None:
        self._store = store
        self._access = access

    def plan(self, resource: KafkaTopic, grant: Granted, context: Context) -> Plan[Status]:
        claims = self._access.find_claims(resource)
        around = Surroundings(
            owner=claims.owner,
            heir=claims.heir,
            rivals=claims.rivals,
            moves=self._store.moves_of(resource),
            find_movers=partial(self._access.find_movers, resource),
        )
        return plan_topic(resource, grant.view, around, context)


class FeatureSetHandler:
    """FeatureSet."""

    leftover = "the finalized levels, if there are any, stay"

    def __init__(self, access: ClusterAccess) -> None:
        self._access = access

    def plan(self, resource: FeatureSet, grant: Granted, context: Context) -> Plan[Status]:
        return plan_feature_set(resource, grant.view, self._access.feature_claims(resource), context)


class ReassignmentHandler:
    """PartitionReassignment. Requests that are on their way are remembered here, because no status and no cluster shows
    them yet. So two objects that are reconciled at the same time request a partition one after the other."""

    leftover = "the move, if it runs, goes on, and its limit stays"

    def __init__(self, store: ObjectStore, access: ClusterAccess, meter: MoveMeter) -> None:
        self._store = store
        self._access = access
        self._meter = meter
        self._asking: dict[Key, tuple[datetime, PartitionReassignment]] = {}

    def plan(self, resource: PartitionReassignment, grant: Granted, context: Context) -> Plan[Status]:
        paused = _plan_paused(resource, context) if resource.metadata.deletion_timestamp is None else None
        if paused:
            return paused
        context = replace(
            context,
            progress=self._meter.progress_of(resource),
            stalls=self._meter.stalls_of(resource),
            can_ask_controller=can_be_asked(grant.asking.bootstrap_servers, grant.view, grant.asking.listener),
        )
        others, pins = partial(self._others, resource, context.now), partial(self._access.find_pins, resource)
        plan = plan_reassignment(resource, grant.view, context, others, pins)
        key, asked = key_of_resource(resource), apply_requests(resource, plan)
        self._asking.pop(key, None)
        if asked is not None:
            self._asking[key] = context.now, asked
        return plan

    def _others(
        self, resource: PartitionReassignment, now: datetime, topics: Collection[TopicName]
    ) -> Sequence[PartitionReassignment]:
        """Return the other objects that have running moves of these topics, or are requesting them."""
        self._asking = {
            key: (since, move)
            for key, (since, move) in self._asking.items()
            if now - since < _ASKING and self._asks(move)
        }
        found = {key_of_resource(each): each for each in self._store.moves_under_way(topics)}
        found |= {key: move for key, (_, move) in self._asking.items()}
        found.pop(key_of_resource(resource), None)
        return self._access.filter_same_cluster(resource, found.values())

    def _asks(self, move: PartitionReassignment) -> bool:
        """Return True if the plan for the object may be carried out: it exists, and is neither ended nor paused."""
        stored = self._store.get(key_of_resource(move))
        live = stored.resource if stored is not None else None
        if not isinstance(live, PartitionReassignment) or live.metadata.uid != move.metadata.uid:
            return False
        return live.ending is None and not live.is_paused


def kind_handlers(
    store: ObjectStore,
    access: ClusterAccess,
    meter: MoveMeter,
    cluster_meter: ClusterMeter,
    namespaces: Collection[str] = (),
) -> Mapping[str, KindHandler]:
    """Return the handler of each kind, by its name."""
    return {
        KafkaCluster.definition.kind: ClusterHandler(store, access, cluster_meter, namespaces),
        KafkaTopic.definition.kind: TopicHandler(store, access),
        PartitionReassignment.definition.kind: ReassignmentHandler(store, access, meter),
        PreferredElection.definition.kind: ElectionHandler(),
        FeatureSet.definition.kind: FeatureSetHandler(access),
    }


def plan_object(handler: KindHandler, resource: AnyResource, grant: Granted, context: Context) -> Plan[Status]:
    """Plan an object over the Kafka cluster that answers, unless it was carried out in another one.

    The status remembers the cluster before anything is done there."""
    grant = replace(grant, view=grant.view.replace_brokers_to_remove(grant.to_remove))
    if isinstance(resource, KafkaCluster):
        return handler.plan(resource, grant, context)
    present = grant.view.cluster_id
    if obstacle := find_obstacle(resource, grant.cluster, present):
        return _plan_held_back(handler, resource, grant, obstacle, context)
    change = find_own_change(resource, grant.cluster, present)
    if change is not None:
        if resource.is_paused:
            return Plan(
                status=make_status(Verdict.make_paused(resource.status, resource.metadata), resource, context.now)
            )
        if ended := end_run(resource, change, context):
            return ended
        resource = begin_again(resource)
    plan = handler.plan(resource, grant, context)
    if resource.metadata.deletion_timestamp is not None or present is None:
        return plan
    return replace(plan, status=plan.status.model_copy(update={"cluster_id": present}))


def _plan_held_back(
    handler: KindHandler, resource: AnyResource, grant: Granted, change: ClusterChange, context: Context
) -> Plan[Status]:
    """Return the plan of an object for which nothing may be done in the Kafka cluster that answers."""
    if resource.metadata.deletion_timestamp is not None:
        if FINALIZER not in resource.metadata.finalizers:
            return Plan(status=resource.status)
        notice = explain_leaving(handler.leftover, grant.cluster, change)
        return Plan(status=resource.status, finalizer=FinalizerWish.RELEASE, notices=(notice,))
    verdict = refuse_object(resource, grant.cluster, change)
    if resource.is_paused:
        verdict = Verdict.make_paused(resource.status, resource.metadata)
    return Plan(status=make_status(verdict, resource, context.now))


def add_next_steps(
    plan: Plan[Status], handler: KindHandler, resource: AnyResource, grant: Granted, context: Context
) -> Plan[Status]:
    """Add the next steps to the plan of a paused object, and remove them from others. A KafkaCluster has none."""
    is_asked = resource.is_paused and resource.metadata.deletion_timestamp is None
    is_asked = is_asked and not isinstance(resource, KafkaCluster)
    found = next_steps(resource, partial(_plan_permitted, handler, grant), context) if is_asked else None
    if found is not None:
        plan = replace(plan, look_again_in_s=found.look_again_in_s)
    words = found.words if found is not None else None
    if words == plan.status.next_steps:
        return plan
    return replace(plan, status=plan.status.model_copy(update={"next_steps": words}))


def _plan_permitted(handler: KindHandler, grant: Granted, resource: AnyResource, context: Context) -> Plan[Status]:
    """Return a plan, as far as the namespace of the object has the right to it."""
    plan = plan_object(handler, resource, grant, context)
    refusal = grant.permission.refuse_steps(plan.steps)
    return Plan(status=make_status(refusal, resource, context.now)) if refusal else plan


def _plan_paused(
    resource: KafkaCluster | PreferredElection | PartitionReassignment, context: Context
) -> Plan[Status] | None:
    if not resource.is_paused:
        return None
    return Plan(status=make_status(Verdict.make_paused(resource.status, resource.metadata), resource, context.now))
