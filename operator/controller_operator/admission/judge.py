"""Judges an object before it is written, by the status that it would get. Only faults that need another spec are
refused.

There is no second set of rules: the object is planned over the present cluster, and the plan is not carried out. Faults
that time or somebody else may remove, such as a missing broker, make only a warning, because GitOps applies many
objects at once in any order. So do faults that the object had before this change, and facts that cannot be known now.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from controller_core.client.log_dirs.log_sizes import OpenBroker
from controller_core.model.snapshot import Snapshot
from controller_core.model.topics.topic_changes import NO_RULES, TopicRules
from controller_operator.kubernetes.object_store import AnyResource, Key, ObjectStore, Raw, StoredObject, key_of
from controller_operator.plans.cluster.deletion import explain_refusal, is_forced
from controller_operator.plans.decision import Situation, decide_permitted
from controller_operator.plans.feature_set import planner as of_features
from controller_operator.plans.outcome import Context, conditions
from controller_operator.plans.reassignment import planner as of_move
from controller_operator.plans.rebalance import run as of_rebalance
from controller_operator.plans.topic import planner as of_topic
from controller_operator.plans.topic.claims import explain_hand_over
from controller_operator.reconciling.access import ClusterAccess, Granted, Withheld
from controller_operator.reconciling.measuring.cluster_meter import ClusterMeter
from controller_operator.reconciling.measuring.move_meter import OVER_TCP, MoveMeter
from controller_operator.reconciling.measuring.plan_maker import PlanMaker
from controller_operator.reconciling.placing import read_places
from controller_operator.reconciling.situations import Situations
from controller_operator.reconciling.wall_clock import Now, utc_now
from controller_operator.resources import (
    FeatureSet,
    KafkaCluster,
    KafkaTopic,
    PartitionReassignment,
    PreferredElection,
    RebalancePlan,
)
from controller_operator.resources.common import ObjectMeta
from controller_operator.resources.conditions import Condition, ConditionStatus, ConditionType, Reason

_PATIENCE_S: Final = 1.0
"""Seconds that a question waits for a cluster that is being read."""
_POLL_S: Final = 0.05
_ONLY_ANOTHER_SPEC_CURES: Final = frozenset({
    Reason.INVALID_SPEC,
    Reason.INVALID_CONFIG,
    Reason.POLICY_VIOLATION,
    Reason.BUDGET_EXCEEDED,
    Reason.INVALID_SCHEDULE,
    Reason.DUPLICATE_REPLICAS,
    Reason.REPLICATION_FACTOR_MISMATCH,
    Reason.TOO_LARGE,
    Reason.PLAN_OUTDATED,
    Reason.PARTITIONS_CANNOT_DECREASE,
    Reason.NOT_ADOPTED,
    Reason.DOWNGRADE_NOT_ALLOWED,
    Reason.NAMESPACE_NOT_ALLOWED,
    Reason.TOPIC_PREFIX_REQUIRED,
})  # fmt: skip
"""Reasons of stalled objects that are refused."""
_AS_ASKED: Final = frozenset({
    Reason.PROGRESSING,
    Reason.PAUSED,
    Reason.COMPLETED,
    Reason.SCHEDULED,
    Reason.SUSPENDED,
    Reason.AWAITING_APPROVAL,
    Reason.OUTSIDE_WINDOW,
    Reason.DRY_RUN,
})  # fmt: skip
"""Reasons for which an object is not ready because its spec asks for that, or only for now."""
_ALONE: Final[Mapping[str, Any]] = {
    KafkaTopic.definition.kind: of_topic.ALONE,
    PartitionReassignment.definition.kind: of_move.ALONE,
    FeatureSet.definition.kind: of_features.ALONE,
    RebalancePlan.definition.kind: of_rebalance.ALONE,
}
"""The surroundings without other objects, by kind."""


Clusters = Callable[[], Awaitable[ClusterAccess]]
"""Returns the present observer of the clusters: that of the working operator, or a standby's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict of the webhook."""

    refusal: str | None = None
    """The reason of a refusal, and the change to make; None if the object is allowed."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Foreseen:
    """The verdict that the status of an object would show."""

    reason: Reason
    message: str
    is_refused: bool

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"

    def hide_details(self) -> "_Foreseen":
        """Return the verdict in words that tell nothing but its reason."""
        return replace(self, message=f"{self.reason.meaning} {NO_DETAILS}")


NO_DETAILS: Final = "(No details: the webhook cannot tell if the API server asks. See webhook.clientCa of the chart.)"
_FINE: Final = Judgement()


class Judge:
    """Judges objects that are written, and the deletion of KafkaClusters and KafkaTopics.

    For a KafkaCluster that is written only the fields are judged, because its cluster is not connected yet."""

    def __init__(
        self,
        store: ObjectStore,
        clusters: Clusters,
        now: Now = utc_now,
        *,
        patience_s: float = _PATIENCE_S,
        open_broker: OpenBroker = OVER_TCP,
        rules: TopicRules = NO_RULES,
        are_callers_known: bool = False,
    ) -> None:
        """`are_callers_known`: True if only the API server can ask."""
        self._are_callers_known = are_callers_known
        self._rules = rules
        self._store = store
        self._clusters = clusters
        self._now = now
        self._patience_s = patience_s
        self._open_broker = open_broker

    async def judge(self, asked: Raw | None, before: Raw | None = None) -> Judgement:
        """Return the judgement on an object as asked, or on its deletion if `asked` is None. `before`: its present
        state.

        Both come from the API server, are of one of our kinds, and have a name and a namespace."""
        if asked is None:
            return await self._judge_deletion(before) if before is not None else _FINE
        if asked["metadata"].get("deletionTimestamp") is not None:
            return _FINE  # its finalizer is removed whatever its spec says
        if before is not None and before.get("spec") == asked.get("spec"):
            return _FINE
        foreseen = await self._foresee(asked, is_told=self._may_be_told(asked, before))
        if foreseen is None:
            return _FINE
        if not foreseen.is_refused:
            return Judgement(warnings=(str(foreseen),))
        known = await self._foresee(before, is_told=False) if before is not None else None
        if known is not None and known.is_refused and known.reason is foreseen.reason:
            return Judgement(warnings=(str(foreseen),))
        return Judgement(refusal=str(foreseen))

    def _may_be_told(self, about: Raw, present: Raw | None) -> bool:
        """Return True if the caller may be told details about an object: it is the API server, or it knows the uid."""
        if self._are_callers_known:
            return True
        stored = self._store.get(key_of(about))
        if stored is None or present is None:
            return False
        return bool(stored.uid) and key_of(present) == stored.key and present["metadata"].get("uid") == stored.uid

    async def _judge_deletion(self, raw: Raw) -> Judgement:
        """Refuse the deletion of a KafkaCluster that objects need, and warn that another object takes a topic over.

        Objects that are being deleted do not count, so that all may be deleted at once. The finalizer waits for them. A
        hand-over needs no consent, because no data is lost: a refusal would only stop GitOps from pruning."""
        about, key = ObjectMeta.model_validate(raw["metadata"]), key_of(raw)
        if about.deletion_timestamp is not None:
            return _FINE
        is_told = self._may_be_told(raw, raw)
        if isinstance(topic := StoredObject(raw).resource, KafkaTopic):
            claims = (await self._clusters()).find_claims(topic)
            warning = explain_hand_over(topic, claims.heir) if claims.owner is None and claims.heir else None
            return Judgement(warnings=(warning,)) if warning and is_told else _FINE
        staying = self._store.list_staying(key) if key.kind == KafkaCluster.definition.kind else set()
        if not staying or is_forced(about):
            return _FINE
        return Judgement(refusal=explain_refusal(about, staying if is_told else ()))

    async def _foresee(self, raw: Raw, *, is_told: bool) -> _Foreseen | None:
        """Return the verdict that the object's status would show; None if there is no objection.

        Unless the caller `is_told` details, the words are those over a cluster without topics and other objects."""
        stored = StoredObject(raw)
        resource = stored.resource
        if resource is None:
            return _Foreseen(reason=Reason.INVALID_SPEC, message=f"{stored.error}", is_refused=True)
        if isinstance(resource, KafkaCluster):
            return None
        if (
            isinstance(resource, PartitionReassignment | PreferredElection | RebalancePlan)
            and resource.ending is not None
        ):
            return None
        access, grant = await self._find_grant(resource)
        now = self._now().replace(microsecond=0)
        if isinstance(grant, Granted):
            seen = await self._find_situation(access, resource, grant, now)
            foreseen = _read_verdict(decide_permitted(resource, seen).status.conditions)
            if foreseen is None or is_told:
                return foreseen
            alone = _read_verdict(decide_permitted(resource, _empty(resource, seen)).status.conditions)
            return foreseen if foreseen == alone else foreseen.hide_details()
        if grant.verdict is None:
            message = "not checked: its cluster is being read, or out of reach"
            return _Foreseen(reason=Reason.ZOOKEEPER_UNAVAILABLE, message=message, is_refused=False)
        withheld = _read_verdict(conditions(grant.verdict, resource.status, resource.metadata, now))
        return withheld if withheld is None or is_told else withheld.hide_details()

    async def _find_grant(self, resource: AnyResource) -> tuple[ClusterAccess, Granted | Withheld]:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._patience_s
        while True:
            # Ask each time: an operator that begins to work closes the sessions that it had as a standby.
            access = await self._clusters()
            grant = access.find_grant(resource)
            if isinstance(grant, Granted) or grant.verdict is not None or loop.time() >= deadline_s:
                return access, grant
            await asyncio.sleep(_POLL_S)

    async def _find_situation(
        self, access: ClusterAccess, resource: AnyResource, grant: Granted, now: datetime
    ) -> Situation:
        open_broker = self._open_broker
        meters = (
            MoveMeter(open_broker, _ignore, self._now),
            ClusterMeter(open_broker, _ignore, self._store),
            PlanMaker(_ignore),
        )
        context = Context(now=now, limits=grant.kafka.limits, is_view_fresh=True, rules=self._rules)
        seen = Situations(self._store, access, *meters).find(resource, grant, context)
        if isinstance(resource, PartitionReassignment) and resource.directories:
            listener = grant.asking.listener
            places = await read_places(resource.directories, seen.view, listener, open_broker, self._patience_s)
            seen = replace(seen, context=replace(seen.context, places=places))
        return seen


def _empty(resource: AnyResource, seen: Situation) -> Situation:
    """Return the situation without topics and other objects."""
    view = seen.view
    empty = Snapshot(
        version=view.version,
        cluster_id=view.cluster_id,
        controller=view.controller,
        brokers=view.brokers,
        cordoned=view.cordoned,
        to_remove=view.to_remove,
        features=view.features,
        voters=view.voters,
        abilities=view.abilities,
    )
    return replace(seen, view=empty, around=_ALONE.get(resource.definition.kind))


def _ignore(_keys: Iterable[Key]) -> None:
    """Ignore measurements, because the object does not exist yet."""


def _read_verdict(said: Iterable[Condition]) -> _Foreseen | None:
    by_type = {each.type: each for each in said}
    ready, is_stalled = by_type.get(ConditionType.READY), ConditionType.STALLED in by_type
    if ready is None or ready.status is ConditionStatus.TRUE:
        return None
    is_refused = is_stalled and ready.reason in _ONLY_ANOTHER_SPEC_CURES
    if not is_refused and ready.reason in _AS_ASKED:
        return None
    return _Foreseen(reason=ready.reason, message=ready.message, is_refused=is_refused)
