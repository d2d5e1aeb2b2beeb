"""Kubernetes events about the states that people wait for: one event for each change of an object's state.

`kubectl describe` then shows beside the present reason when it began and what came before it. If a whole cluster is in
trouble, only its KafkaCluster gets an event, because otherwise ten thousand topics would repeat it at once.
"""

from typing import Final

from controller_operator.plans.outcome import Notice
from controller_operator.resources import KafkaCluster
from controller_operator.resources.common import Status
from controller_operator.resources.conditions import Condition, ConditionType, Reason

_WANTED: Final = frozenset({Reason.PAUSED, Reason.AWAITING_APPROVAL, Reason.OTHER_CLUSTER_DECIDES})
"""States in which nothing is wrong and which people must know."""
_TROUBLES: Final = frozenset({
    Reason.CLUSTER_NOT_FOUND,
    Reason.NAMESPACE_NOT_ALLOWED,
    Reason.TOPIC_PREFIX_REQUIRED,
    Reason.RESOURCE_CONFLICT,
    Reason.NOT_ADOPTED,
    Reason.INVALID_CONFIG,
    Reason.POLICY_VIOLATION,
    Reason.BUDGET_EXCEEDED,
    Reason.INVALID_SCHEDULE,
    Reason.UNKNOWN_TOPIC,
    Reason.UNKNOWN_PARTITION,
    Reason.UNKNOWN_BROKER,
    Reason.BROKER_TO_BE_REMOVED,
    Reason.PINNED_BY_TOPIC,
    Reason.NOT_ENOUGH_BROKERS,
    Reason.DUPLICATE_REPLICAS,
    Reason.REPLICATION_FACTOR_MISMATCH,
    Reason.TOO_LARGE,
    Reason.PARTITIONS_CANNOT_DECREASE,
    Reason.FEATURE_UNSUPPORTED,
    Reason.DOWNGRADE_NOT_ALLOWED,
    Reason.PLAN_IMPOSSIBLE,
    Reason.PLAN_OUTDATED,
    Reason.REQUEST_REFUSED,
    Reason.WAITING_FOR_DEPENDENTS,
})  # fmt: skip
_CLUSTER_TROUBLES: Final = frozenset({
    Reason.ZOOKEEPER_UNAVAILABLE,
    Reason.CHROOT_NOT_FOUND,
    Reason.NOT_SUPPORTED,
    Reason.BROKERS_UNAVAILABLE,
    Reason.NOT_ADMITTED,
    Reason.NO_CONTROLLER,
    Reason.CLUSTER_NOT_IDENTIFIED,
    Reason.CLUSTER_CHANGED,
    Reason.CONTROLLER_ID_TAKEN,
    Reason.BROKERS_UNSUPPORTED,
})  # fmt: skip
"""Troubles of a whole cluster, which only its KafkaCluster has events about."""


def state_news(kind: str, before: Status, after: Status) -> Notice | None:
    """Return the event about the new state of an object; None if the state is the same, or is no news for people."""
    ready, was = after.condition(ConditionType.READY), before.condition(ConditionType.READY)
    if ready is None or _state(ready) == _state(was) or _has_ended(after):
        return None
    is_trouble = ready.reason in _TROUBLES or (
        kind == KafkaCluster.definition.kind and ready.reason in _CLUSTER_TROUBLES
    )
    if not is_trouble and ready.reason not in _WANTED:
        return None
    # An operator that restarts after the event and before the status makes the same event, and the API server refuses it.
    since = str(was.last_transition_time) if was is not None else ""
    return Notice(reason=ready.reason, message=ready.message, is_warning=is_trouble, occurrence=since)


def _state(ready: Condition | None) -> tuple[Reason, int] | None:
    """Return what tells two states apart. A new spec with the same fault is a new mistake."""
    return (ready.reason, ready.observed_generation) if ready is not None else None


def _has_ended(status: Status) -> bool:
    """Return True if the one run of the object is over. Its end has an event of its own."""
    return any(status.condition(each) is not None for each in (ConditionType.COMPLETE, ConditionType.FAILED))
