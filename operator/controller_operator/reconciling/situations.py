"""Finds the situation of an object: the cluster as it was last observed, and the other objects that matter.

This is what a decision (`plans.decision`) sees. It also keeps the memories of decisions that no status holds.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from controller_core.model.ids import TopicName
from controller_operator.kafka.requests.features import can_be_asked
from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, key_of_resource
from controller_operator.plans.cluster import planner as of_cluster
from controller_operator.plans.cluster.news import Told
from controller_operator.plans.consent.budget import NO_ALLOWANCES, Allowances
from controller_operator.plans.decision import Situation
from controller_operator.plans.outcome import Context, Plan
from controller_operator.plans.placement.pins import may_pin
from controller_operator.plans.reassignment import planner as of_move
from controller_operator.plans.rebalance import run as of_rebalance
from controller_operator.plans.rebalance.healing import Sight
from controller_operator.plans.topic.case import Surroundings as TopicSurroundings
from controller_operator.reconciling.access import ClusterAccess, Granted
from controller_operator.reconciling.measuring.cluster_meter import ClusterMeter
from controller_operator.reconciling.measuring.move_meter import MoveMeter
from controller_operator.reconciling.measuring.plan_maker import PlanMaker
from controller_operator.resources import FeatureSet, KafkaCluster, KafkaTopic, PartitionReassignment, RebalancePlan
from controller_operator.resources.common import Status

_FORGOTTEN: Final = timedelta(hours=1)
_ASKING: Final = timedelta(minutes=1)
"""Time after which a request is no longer on its way, whatever its result."""


class Situations:
    """Finds situations in the store, the observed clusters and the measurements.

    It remembers requests for moves that are on their way, because no status and no cluster shows them yet. So two
    objects that are reconciled at the same time request a partition one after the other."""

    def __init__(
        self,
        store: ObjectStore,
        access: ClusterAccess,
        meter: MoveMeter,
        cluster_meter: ClusterMeter,
        plan_maker: PlanMaker,
    ) -> None:
        self._store = store
        self._access = access
        self._meter = meter
        self._cluster_meter = cluster_meter
        self._plan_maker = plan_maker
        self._told: dict[str, Told] = {}
        self._sights: dict[str, Sight] = {}
        self._asking: dict[Key, tuple[datetime, PartitionReassignment]] = {}

    def find(self, resource: AnyResource, grant: Granted, context: Context) -> Situation:
        """Return the situation of an object whose cluster can be read and written now."""
        around: Any = None  # no other object matters for an election
        match resource:
            case KafkaCluster():
                key = key_of_resource(resource)
                findings = self._cluster_meter.findings_of(key, resource.metadata.uid)
                around = of_cluster.Surroundings(
                    decider=self._access.find_decider(resource),
                    carried_out=self._store.count_carried_out(key),
                    directories=findings.directories,
                    differences=findings.differences,
                    ownerless=findings.ownerless,
                    told=self._told.get(resource.metadata.uid),
                    allowances=self._access.list_allowances(resource),
                )
            case KafkaTopic():
                claims = self._access.find_claims(resource)
                around = TopicSurroundings(
                    owner=claims.owner,
                    heir=claims.heir,
                    rivals=claims.rivals,
                    moves=self._store.moves_of(resource),
                    find_movers=partial(self._access.find_movers, resource),
                    allowances=self._find_allowances(resource, grant),
                )
            case PartitionReassignment():
                asking = grant.asking
                context = replace(
                    context,
                    progress=self._meter.progress_of(resource),
                    stalls=self._meter.stalls_of(resource),
                    places=self._meter.places_of(resource),
                    can_ask_controller=can_be_asked(asking.bootstrap_servers, grant.view, asking.listener),
                )
                around = of_move.Surroundings(
                    others=partial(self._find_others, resource, context.now),
                    find_pins=partial(self._access.find_pins, resource),
                    allowances=self._find_allowances(resource, grant),
                )
            case FeatureSet():
                around = self._access.feature_claims(resource)
            case RebalancePlan():
                around = of_rebalance.Surroundings(
                    moves=self._store.moves_of(resource),
                    found=self._plan_maker.find_answer(resource),
                    find_pinned=partial(self._find_pinned, resource, grant),
                    brokers=grant.cluster.status.brokers,
                    sight=self._sights.get(resource.metadata.uid),
                )
        return Situation(
            cluster=grant.cluster,
            view=grant.view.replace_brokers_to_remove(grant.to_remove),
            permission=grant.permission,
            context=context,
            around=around,
        )

    def remember(self, resource: AnyResource, plan: Plan[Status], context: Context) -> None:
        """Keep the memory of a decision before it is carried out."""
        key = key_of_resource(resource)
        if isinstance(plan.memory, Told):
            present = {each.metadata.uid for each in self._store.clusters()}
            told = {known: told for known, told in self._told.items() if known in present}
            self._told = told | {resource.metadata.uid: plan.memory}
        if isinstance(plan.memory, Sight):
            recent = {uid: sight for uid, sight in self._sights.items() if context.now - sight.last < _FORGOTTEN}
            self._sights = recent | {resource.metadata.uid: plan.memory}
        if isinstance(resource, PartitionReassignment):
            self._asking.pop(key, None)
            if isinstance(plan.memory, PartitionReassignment):
                self._asking[key] = context.now, plan.memory

    def _find_others(
        self, resource: PartitionReassignment, now: datetime, topics: Collection[TopicName]
    ) -> Sequence[PartitionReassignment]:
        """Return the other objects that have running moves of these topics, or are requesting them."""
        self._asking = {
            key: (since, move)
            for key, (since, move) in self._asking.items()
            if now - since < _ASKING and self._asks(move)
        }
        return self._add_asking(resource, self._store.moves_under_way(topics))

    def _add_asking(
        self, resource: PartitionReassignment, under_way: Iterable[PartitionReassignment]
    ) -> Sequence[PartitionReassignment]:
        """Return the moves and those that are being requested, without the object, in the same Kafka cluster."""
        found = {key_of_resource(each): each for each in under_way}
        found |= {key: move for key, (_, move) in self._asking.items()}
        found.pop(key_of_resource(resource), None)
        return self._access.filter_same_cluster(resource, found.values())

    def _find_pinned(self, resource: RebalancePlan, grant: Granted) -> list[str]:
        """Return the topics whose replicas a KafkaTopic with driftPolicy Enforce names."""
        pins = self._access.find_pins(resource, dict.fromkeys(grant.view.topics, ()), ())
        return [each.topic_name for each in pins if may_pin(each, grant.view)]

    def _find_allowances(self, resource: KafkaTopic | PartitionReassignment, grant: Granted) -> Allowances:
        if not grant.permission.allowances:
            return NO_ALLOWANCES
        namespace = resource.metadata.namespace
        find_uses = partial(self._access.find_uses, grant.cluster, namespace)
        if isinstance(resource, KafkaTopic):
            return Allowances(each=grant.permission.allowances, find_uses=find_uses)
        count_moves = partial(self._count_moves, resource)
        return Allowances(each=grant.permission.allowances, find_uses=find_uses, count_moves=count_moves)

    def _count_moves(self, resource: PartitionReassignment) -> int:
        """Count the other moves of a namespace that are under way or being requested."""
        namespace = resource.metadata.namespace
        found = self._add_asking(resource, self._store.list_moving(namespace))
        return sum(each.metadata.namespace == namespace for each in found)

    def _asks(self, move: PartitionReassignment) -> bool:
        """Return True if the plan for the object may be carried out: it exists, and is neither ended nor paused."""
        stored = self._store.get(key_of_resource(move))
        live = stored.resource if stored is not None else None
        if not isinstance(live, PartitionReassignment) or live.metadata.uid != move.metadata.uid:
            return False
        return live.ending is None and not live.is_paused
