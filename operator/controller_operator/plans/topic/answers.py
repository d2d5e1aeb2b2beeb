"""The cluster's answers to requests for changes of topics, as the object shows them.

Only the cluster has the last word, and a person must read its message. A refused request is repeated now and then,
because time or somebody may have removed the cause. Until there is another answer the object keeps its message.
"""

from dataclasses import replace
from typing import Final

from controller_operator.kafka.requests.topics import TopicReply
from controller_operator.plans.outcome import Context, Step, Verdict
from controller_operator.plans.topic.status import Finding
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.topic import KafkaTopic

_TROUBLE_RETRY_S: Final = 5.0
_REFUSAL_RETRY_S: Final = 60.0
_STICKY: Final = (Reason.BROKERS_UNAVAILABLE, Reason.REQUEST_REFUSED)


def apply_answers(finding: Finding, resource: KafkaTopic, context: Context) -> Finding:
    """Return a finding without the steps that failed in this reconciliation, with the reason of the failure."""
    in_vain = [reply for reply in context.topics if any(_is_answer_to(step, reply) for step in finding.steps)]
    if in_vain:
        verdict, retry_s = _verdict(in_vain[0])
        steps = tuple(step for step in finding.steps if not any(_is_answer_to(step, reply) for reply in in_vain))
        verdict = replace(verdict, others=finding.verdict.others)
        return replace(finding, verdict=verdict, steps=steps, notices=(), look_again_in_s=retry_s)
    if finding.steps and not context.topics and (before := _repeat_verdict(resource)) is not None:
        return replace(finding, verdict=replace(before, others=finding.verdict.others))
    return finding


def _is_answer_to(step: Step, reply: TopicReply) -> bool:
    """Return True if the step would fail again. A step that has changed since, because a broker has gone, is not the
    refused one."""
    if reply.trouble is not None:
        return type(step) is type(reply.step)
    return reply.refused is not None and step == reply.step


def _verdict(reply: TopicReply) -> tuple[Verdict, float]:
    if reply.trouble is not None:
        message = f"the controller could not be asked: {reply.trouble}"
        return Verdict.make_working(Reason.BROKERS_UNAVAILABLE, message), _TROUBLE_RETRY_S
    return Verdict.make_stalled(Reason.REQUEST_REFUSED, f"the cluster refuses it: {reply.refused}"), _REFUSAL_RETRY_S


def _repeat_verdict(resource: KafkaTopic) -> Verdict | None:
    """Return the last verdict if a failed request is repeated, so that the message stays until there is an answer."""
    ready, stalled = (resource.status.condition(type_) for type_ in (ConditionType.READY, ConditionType.STALLED))
    if ready is None or ready.reason not in _STICKY or ready.observed_generation != resource.metadata.generation:
        return None
    return (Verdict.make_working if stalled is None else Verdict.make_stalled)(ready.reason, ready.message)
