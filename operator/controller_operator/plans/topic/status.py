"""The status of a KafkaTopic, from its live state and the finding of a planner."""

from dataclasses import dataclass, field, replace
from typing import Final

from controller_core.model.snapshot import Snapshot, TopicSnapshot
from controller_operator.kafka.actions import Action
from controller_operator.plans.outcome import Context, Notice, Plan, Step, Verdict, choose_finalizer, conditions
from controller_operator.plans.partition_rows import partition_counts, topic_rows
from controller_operator.plans.topic.undeclared import show_undeclared
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.schema import MAX_STATUS_ENTRIES
from controller_operator.resources.topic import Difference, KafkaTopic, KafkaTopicStatus
from controller_operator.resources.topic import Plan as PlannedChanges

LOOK_AGAIN_S: Final = 30.0
"""Seconds between looks at an object that waits for something outside the cluster."""


_LEADERS_WITHIN_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A planner's result: the verdict, and the steps to take."""

    verdict: Verdict
    steps: tuple[Step, ...] = ()
    notices: tuple[Notice, ...] = ()
    drift: tuple[Difference, ...] = ()
    planned: PlannedChanges | None = None
    needs_fresh_view: bool = False
    identity: dict[str, object] = field(default_factory=dict)
    """Fields of the status that change: `topic_id`, `config_keys`, `applied`, `corrections`, and `counts` if the topic
    was not seen yet."""
    look_again_in_s: float | None = None
    """Seconds until the next look; None: the default for the verdict."""


def topic_plan(
    resource: KafkaTopic, view: Snapshot, topic: TopicSnapshot | None, finding: Finding, context: Context
) -> Plan[KafkaTopicStatus]:
    """Return the plan for a finding, without the steps that exceed ZooKeeper's limit."""
    finding = _drop_too_large(finding, context)
    status = resource.status.model_copy(
        update={
            "observed_generation": resource.metadata.generation,
            "conditions": conditions(finding.verdict, resource.status, resource.metadata, context.now),
            "topic_name": resource.topic_name,
            **_read_live(resource, view, topic),
            "drift": finding.drift[:MAX_STATUS_ENTRIES],
            "plan": finding.planned,
            **finding.identity,
        }
    )
    return Plan(
        status=status,
        steps=finding.steps,
        finalizer=choose_finalizer(resource.metadata, resource.spec.deletion_policy),
        notices=finding.notices,
        look_again_in_s=finding.look_again_in_s or (LOOK_AGAIN_S if finding.verdict.is_reconciling else None),
        may_wait_s=0.0 if finding.steps or topic is None else _find_wait_s(resource, topic, finding.verdict, context),
        needs_fresh_view=finding.needs_fresh_view,
        is_progress=all(getattr(resource.status, name) == value for name, value in finding.identity.items()),
    )


def _drop_too_large(finding: Finding, context: Context) -> Finding:
    """Drop the steps that exceed the limit for one write, because only a person can change that; keep the others."""
    too_large = {
        at: why
        for at, step in enumerate(finding.steps)
        if isinstance(step, Action) and (why := context.limits.why_too_large(step))
    }
    if not too_large:
        return finding
    steps = tuple(step for at, step in enumerate(finding.steps) if at not in too_large)
    message = f"{finding.verdict.message} is not possible: {'; '.join(too_large.values())}"
    verdict = replace(Verdict.make_stalled(Reason.TOO_LARGE, message), others=finding.verdict.others)
    return replace(finding, verdict=verdict, steps=steps, notices=finding.notices if steps else ())


def _find_wait_s(resource: KafkaTopic, topic: TopicSnapshot, verdict: Verdict, context: Context) -> float:
    """Return the seconds for which a new topic need not report missing leaders: the controller is about to elect
    them."""
    ready = resource.status.condition(ConditionType.READY)
    if verdict.reason is not Reason.PARTITIONS_OFFLINE or not topic.awaits_first_leaders or ready is None:
        return 0.0
    if ready.reason != Reason.PROGRESSING or ready.last_transition_time is None:
        return 0.0
    return max(0.0, _LEADERS_WITHIN_S - (context.now - ready.last_transition_time).total_seconds())


def _read_live(resource: KafkaTopic, view: Snapshot, topic: TopicSnapshot | None) -> dict[str, object]:
    """Return the live fields. A missing topic keeps its last counts, because they show that it has existed."""
    if topic is None:
        return {"partitions": (), "replication_factor": None, "undeclared_config": None}
    return {
        "undeclared_config": show_undeclared(resource, topic),
        "counts": partition_counts(topic.counts),
        "partitions": topic_rows(view, topic),
        "replication_factor": min(len(replicas.target) for replicas in topic.partitions.values()),
    }
