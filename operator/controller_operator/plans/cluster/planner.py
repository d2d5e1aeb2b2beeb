"""KafkaCluster: only shows the state of the cluster, and changes nothing in it."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from controller_core.model.features import FinalizedFeatures
from controller_core.model.settings.differences import Difference
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_operator.kubernetes.object_store import CarriedOut, TopicUse
from controller_operator.plans.cluster.health import (
    Directories,
    disk_notices,
    judge_health,
    judge_settings,
    list_brokers,
)
from controller_operator.plans.cluster.news import Told, find_news
from controller_operator.plans.cluster_change import find_own_change, refuse_cluster
from controller_operator.plans.consent.budget import Allowance, show_use
from controller_operator.plans.outcome import Context, Plan, Verdict, conditions, plan_paused
from controller_operator.plans.partition_rows import count_fields
from controller_operator.plans.placement.removal import describe_removals, mark_removals
from controller_operator.plans.upkeep.ownerless_limits import NO_LIMITS, LimitsPlan, plan_ownerless_limits
from controller_operator.resources.cluster import (
    ClusterCounts,
    ControllerKind,
    ControllerStatus,
    FeaturesStatus,
    FinalizedFeature,
    KafkaCluster,
    KafkaClusterStatus,
)
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.schema import MAX_STATUS_ENTRIES

_NAMED: Final = 10
"""Number of brokers that a message names."""
_OBJECTS_WAIT_S: Final = 15.0
"""Seconds between reconciliations of a KafkaCluster whose objects were carried out in another Kafka cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The other objects, and the answers of brokers, that matter for a KafkaCluster."""

    decider: KafkaCluster | None = None
    """The other KafkaCluster whose `allowedNamespaces` also applies to this one."""
    carried_out: Counter[CarriedOut] = field(default_factory=Counter)
    """The Kafka clusters in which its objects were carried out."""
    directories: Directories | None = None
    """The brokers' log directories, if known."""
    differences: Sequence[Difference] | None = None
    """The settings that differ between brokers or controller, if known."""
    ownerless: Collection[str] = ()
    """The owners of recorded throttles whose objects are gone."""
    told: Told | None = None
    """The last report of events; None after a restart."""
    allowances: Sequence[tuple[Allowance, Sequence[TopicUse]]] = ()
    """The budgets that it gives to namespaces, with their use."""


def decide(cluster: KafkaCluster, view: Snapshot, context: Context, around: Surroundings) -> Plan[KafkaClusterStatus]:
    """Return the decision about a KafkaCluster: what its status shows, and which events report news."""
    if cluster.is_paused:
        return plan_paused(cluster, context)
    show = partial(
        show_cluster,
        cluster,
        view,
        context,
        directories=around.directories,
        differences=around.differences,
        allowances=around.allowances,
    )
    if refusal := refuse_cluster(cluster, view.cluster_id, around.carried_out):
        return replace(show(refusal=refusal), look_again_in_s=_OBJECTS_WAIT_S)
    plan = show(decider=around.decider, limits=plan_ownerless_limits(around.ownerless, context))
    is_same = find_own_change(cluster, cluster, view.cluster_id) is None
    told, status = (around.told, cluster.status) if is_same else (None, KafkaClusterStatus())
    news = find_news(told, status, view, context.now)
    pauses = [each for each in (plan.look_again_in_s, news.look_again_in_s) if each is not None]
    notices = (*news.notices, *plan.notices)
    return replace(plan, notices=notices, look_again_in_s=min(pauses, default=None), memory=news.told)


def show_cluster(
    cluster: KafkaCluster,
    view: Snapshot,
    context: Context,
    *,
    decider: KafkaCluster | None = None,
    refusal: Verdict | None = None,
    directories: Directories | None = None,
    differences: Sequence[Difference] | None = None,
    limits: LimitsPlan = NO_LIMITS,
    allowances: Sequence[tuple[Allowance, Sequence[TopicUse]]] = (),
) -> Plan[KafkaClusterStatus]:
    """Return the plan whose status shows the cluster. Its cluster id stays while another Kafka cluster is not accepted.

    `refusal`: why this Kafka cluster is not accepted. `limits`: the removals of throttles without an owner."""
    known = cluster.status.cluster_id
    if refusal is not None and known != view.cluster_id:
        return _plan_other(cluster, refusal, context)
    controller = view.controller
    is_same = view.cluster_id in (None, known)
    before = cluster.status.brokers if is_same else ()
    brokers = list_brokers(before, view, context.now, directories)
    nearly_full = cluster.spec.disk_nearly_full_percent
    said = _verdict(cluster, view, decider) if refusal is None else refusal
    health = judge_health(brokers.missing, view.counts, brokers.rows, nearly_full)
    settings = judge_settings(differences, cluster.status.condition(ConditionType.SETTINGS_DIFFER))
    verdict = replace(said, others=(health, *settings))
    return Plan(
        status=KafkaClusterStatus(
            observed_generation=cluster.metadata.generation,
            conditions=conditions(verdict, cluster.status, cluster.metadata, context.now),
            cluster_id=view.cluster_id or known,
            controller=ControllerStatus(
                id=controller.id, epoch=controller.epoch, kind=ControllerKind(controller.kind.value)
            )
            if controller
            else None,
            brokers=mark_removals(brokers.rows, view),
            features=_features(view, view.features, cluster.status.features) if view.features else None,
            counts=ClusterCounts(
                brokers=len(view.brokers),
                missing_brokers=len(brokers.missing),
                topics=len(view.topics),
                **count_fields(view.counts),
            ),
            namespaces=tuple(show_use(each, uses, view) for each, uses in allowances[:MAX_STATUS_ENTRIES]),
        ),
        steps=limits.steps,
        notices=(*disk_notices(before, brokers.rows, context.now, nearly_full), *limits.notices),
        is_progress=True,
        look_again_in_s=brokers.next_forgotten_in_s,
    )


def _plan_other(cluster: KafkaCluster, refusal: Verdict, context: Context) -> Plan[KafkaClusterStatus]:
    """Keep the status, because everything in the view is about another Kafka cluster."""
    unseen = (ConditionType.DEGRADED, ConditionStatus.UNKNOWN, refusal.reason, refusal.message)
    said = conditions(replace(refusal, others=(unseen,)), cluster.status, cluster.metadata, context.now)
    update = {"observed_generation": cluster.metadata.generation, "conditions": said}
    return Plan(status=cluster.status.model_copy(update=update))


def _verdict(cluster: KafkaCluster, view: Snapshot, decider: KafkaCluster | None) -> Verdict:
    if view.controller is None:
        return Verdict.make_working(Reason.NO_CONTROLLER, _describe_leaderless(view))
    if view.is_controller_id_taken:
        return Verdict.make_working(
            Reason.CONTROLLER_ID_TAKEN,
            f"a broker is registered under the controller's id {view.controller.id}, and is ignored: give the controller "
            "another --id, or the broker another broker.id",
        )
    if view.unsupported_brokers:
        named = ", ".join(map(str, view.unsupported_brokers[:_NAMED]))
        return Verdict.make_working(
            Reason.BROKERS_UNSUPPORTED,
            f"controller {view.controller.id} cannot lead {len(view.unsupported_brokers)} brokers because of their release "
            f"or mode of Kafka, and sends them nothing: {named}; its log has the reasons",
        )
    if view.counts.offline:
        return Verdict.make_working(
            Reason.PARTITIONS_OFFLINE, f"{view.counts.offline} of {view.counts.partitions} partitions have no leader"
        )
    shape = f"controller {view.controller.id}, {len(view.brokers)} brokers, {view.counts.partitions} partitions"
    shape += describe_removals(view)
    if decider is None:
        return Verdict.make_good(Reason.RECONCILED, shape)
    other = f"KafkaCluster {decider.metadata.full_name}"
    overruled = ", so the list of this one has no effect" if cluster.spec.allowed_namespaces is not None else ""
    return Verdict.make_good(
        Reason.OTHER_CLUSTER_DECIDES,
        f"{shape}; {other} stands for the same Kafka cluster, and its spec.allowedNamespaces also applies to this one"
        f"{overruled}",
    )


def _describe_leaderless(view: Snapshot) -> str:
    if view.voters is None:
        return "the cluster has no controller"
    voters = list_some(view.voters)
    return (
        f"the controllers{f' ({voters})' if voters else ''} have no leader: brokers keep serving, but nothing can be "
        "changed, and no partition can get a new leader. More than half of the controllers must run and reach each other: "
        "look at their pods and logs"
    )


def _features(view: Snapshot, features: FinalizedFeatures, before: FeaturesStatus | None) -> FeaturesStatus:
    levels = sorted(features.features.items())[:MAX_STATUS_ENTRIES]
    finalized = tuple(FinalizedFeature(name=name, max_version_level=level) for name, level in levels)
    are_same = before is not None and before.finalized == finalized
    epoch = view.features_epoch(before.epoch if before else None, are_same=are_same)
    return FeaturesStatus(epoch=features.epoch if epoch is None else epoch, finalized=finalized)
