"""The status of a KafkaTopic, put together from what is live and what a planner has to say about it."""

from dataclasses import dataclass, field, replace
from typing import Final

from controller_operator.kafka.actions import Action
from controller_operator.kafka.cluster_view import ClusterView, TopicView
from controller_operator.plans.outcome import Context, Notice, Plan, Step, Verdict, conditions, wanted_finalizer
from controller_operator.plans.partition_rows import partition_counts, topic_rows
from controller_operator.plans.topic.undeclared import shown_undeclared
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.schema import MAX_STATUS_ENTRIES
from controller_operator.resources.topic import Difference, KafkaTopic, KafkaTopicStatus
from controller_operator.resources.topic import Plan as PlannedChanges

LOOK_AGAIN_S: Final = 30.0
"""Whatever waits for something outside the cluster is looked at this often."""


_LEADERS_WITHIN_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a planner found, and what it wants done."""

    verdict: Verdict
    steps: tuple[Step, ...] = ()
    notices: tuple[Notice, ...] = ()
    drift: tuple[Difference, ...] = ()
    planned: PlannedChanges | None = None
    needs_fresh_view: bool = False
    identity: dict[str, object] = field(default_factory=dict)
    """Fields of the status that change: `topic_id`, `config_keys`, `applied`, `corrections`, and `counts` where the topic
    is yet to be seen."""
    look_again_in_s: float | None = None
    """When to look again by itself; None: as often as the verdict asks for it."""


def topic_plan(
    resource: KafkaTopic, view: ClusterView, topic: TopicView | None, finding: Finding, context: Context
) -> Plan[KafkaTopicStatus]:
    """The plan that carries a finding, without the steps that ZooKeeper would not take."""
    finding = _fitting(finding, context)
    status = resource.status.model_copy(
        update={
            "observed_generation": resource.metadata.generation,
            "conditions": conditions(finding.verdict, resource.status, resource.metadata, context.now),
            "topic_name": resource.topic_name,
            **_live(resource, view, topic),
            "drift": finding.drift[:MAX_STATUS_ENTRIES],
            "plan": finding.planned,
            **finding.identity,
        }
    )
    return Plan(
        status=status,
        steps=finding.steps,
        finalizer=wanted_finalizer(resource.metadata, resource.spec.deletion_policy),
        notices=finding.notices,
        look_again_in_s=finding.look_again_in_s or (LOOK_AGAIN_S if finding.verdict.is_reconciling else None),
        may_wait_s=0.0 if finding.steps or topic is None else _until_led_s(resource, topic, finding.verdict, context),
        needs_fresh_view=finding.needs_fresh_view,
        is_progress=all(getattr(resource.status, name) == value for name, value in finding.identity.items()),
    )


def _fitting(finding: Finding, context: Context) -> Finding:
    """What does not fit one write only a person can change; the other steps are carried out."""
    too_large = {
        at: why
        for at, step in enumerate(finding.steps)
        if isinstance(step, Action) and (why := context.limits.why_too_large(step))
    }
    if not too_large:
        return finding
    steps = tuple(step for at, step in enumerate(finding.steps) if at not in too_large)
    message = f"{finding.verdict.message} is not possible: {'; '.join(too_large.values())}"
    verdict = replace(Verdict.stalled(Reason.TOO_LARGE, message), others=finding.verdict.others)
    return replace(finding, verdict=verdict, steps=steps, notices=finding.notices if steps else ())


def _until_led_s(resource: KafkaTopic, topic: TopicView, verdict: Verdict, context: Context) -> float:
    """Seconds for which a new topic without leaders need not say so: the controller is about to give it some."""
    ready = resource.status.condition(ConditionType.READY)
    if verdict.reason is not Reason.PARTITIONS_OFFLINE or not topic.awaits_first_leaders or ready is None:
        return 0.0
    if ready.reason != Reason.PROGRESSING or ready.last_transition_time is None:
        return 0.0
    return max(0.0, _LEADERS_WITHIN_S - (context.now - ready.last_transition_time).total_seconds())


def _live(resource: KafkaTopic, view: ClusterView, topic: TopicView | None) -> dict[str, object]:
    """What the cluster shows. A topic that is not there keeps its last counts: they say that it has been there."""
    if topic is None:
        return {"partitions": (), "replication_factor": None, "undeclared_config": None}
    return {
        "undeclared_config": shown_undeclared(resource, topic),
        "counts": partition_counts(topic.counts),
        "partitions": topic_rows(view, topic),
        "replication_factor": min(len(replicas.target) for replicas in topic.partitions.values()),
    }
