"""The plan for a KafkaTopic: its status, from its live state and the finding of a rule, and the steps."""

from dataclasses import replace
from typing import Final

from controller_core.model.snapshot import Snapshot, TopicSnapshot
from controller_operator.kafka.actions import Action
from controller_operator.kafka.requests.topics import TopicReply
from controller_operator.plans.outcome import Context, Plan, Step, Verdict, choose_finalizer, conditions
from controller_operator.plans.partition_rows import partition_counts, topic_rows
from controller_operator.plans.topic.case import Case, Finding
from controller_operator.plans.topic.moves import list_unfinished
from controller_operator.plans.topic.undeclared import show_undeclared
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.schema import MAX_STATUS_ENTRIES
from controller_operator.resources.topic import KafkaTopic, KafkaTopicStatus, TopicReassignment

LOOK_AGAIN_S: Final = 30.0
"""Seconds between looks at an object that waits for something outside the cluster."""
_LEADERS_WITHIN_S: Final = 2.0
_TROUBLE_RETRY_S: Final = 5.0
_REFUSAL_RETRY_S: Final = 60.0


def make_plan(case: Case, finding: Finding) -> Plan[KafkaTopicStatus]:
    """Return the plan for a finding, without the steps that failed just now, or that exceed ZooKeeper's limit.

    The status shows nothing of a topic that another object owns."""
    resource, view, context = case.resource, case.view, case.context
    topic = case.topic if case.around.owner is None else None
    finding = _drop_too_large(_apply_answers(finding, resource, context), context)
    status = resource.status.model_copy(
        update={
            "observed_generation": resource.metadata.generation,
            "conditions": conditions(finding.verdict, resource.status, resource.metadata, context.now),
            "topic_name": resource.topic_name,
            **_read_live(resource, view, topic),
            "drift": finding.drift[:MAX_STATUS_ENTRIES],
            "plan": finding.planned,
            "reassignment": _keep_running(case),
            **finding.identity,
        }
    )
    return Plan(
        status=status,
        steps=finding.steps,
        finalizer=choose_finalizer(resource.metadata, resource.spec.deletion_policy),
        notices=finding.notices,
        look_again_in_s=finding.look_again_in_s or (LOOK_AGAIN_S if _may_change(finding.verdict) else None),
        may_wait_s=0.0 if finding.steps or topic is None else _find_wait_s(resource, topic, finding.verdict, context),
        needs_fresh_view=finding.needs_fresh_view,
        is_progress=all(getattr(resource.status, name) == value for name, value in finding.identity.items()),
    )


def _keep_running(case: Case) -> TopicReassignment | None:
    """Return the record of the topic's move, unless that has ended."""
    record = case.status.reassignment
    return record if record is not None and record.name in list_unfinished(case.around.moves) else None


def _may_change(verdict: Verdict) -> bool:
    """Return True if time or other objects may change the verdict: they may give a budget room."""
    return verdict.is_reconciling or verdict.reason is Reason.BUDGET_EXCEEDED


def _apply_answers(finding: Finding, resource: KafkaTopic, context: Context) -> Finding:
    """Return a finding without the steps that failed in this reconciliation, with the reason of the failure.

    A refused request is repeated now and then, because time or somebody may have removed the cause. Until there is
    another answer the object keeps its message, because only the cluster has the last word."""
    in_vain = [reply for reply in context.topics if any(_is_answer_to(step, reply) for step in finding.steps)]
    if in_vain:
        verdict, retry_s = _judge_failure(in_vain[0])
        steps = tuple(step for step in finding.steps if not any(_is_answer_to(step, reply) for reply in in_vain))
        verdict = replace(verdict, others=finding.verdict.others)
        return replace(finding, verdict=verdict, steps=steps, notices=(), look_again_in_s=retry_s)
    if finding.steps and not context.topics and (before := Verdict.repeat_failure(resource)) is not None:
        return replace(finding, verdict=replace(before, others=finding.verdict.others))
    return finding


def _is_answer_to(step: Step, reply: TopicReply) -> bool:
    """Return True if the step would fail again. A step that has changed since, because a broker has gone, is not the
    refused one."""
    if reply.trouble is not None:
        return type(step) is type(reply.step)
    return reply.refused is not None and step == reply.step


def _judge_failure(reply: TopicReply) -> tuple[Verdict, float]:
    if reply.trouble is not None:
        message = f"the controller could not be asked: {reply.trouble}"
        return Verdict.make_working(Reason.BROKERS_UNAVAILABLE, message), _TROUBLE_RETRY_S
    return Verdict.make_stalled(Reason.REQUEST_REFUSED, f"the cluster refuses it: {reply.refused}"), _REFUSAL_RETRY_S


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
        "replication_factor": min((len(replicas.target) for replicas in topic.partitions.values()), default=None),
    }
