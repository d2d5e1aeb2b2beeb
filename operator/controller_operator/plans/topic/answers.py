"""What a cluster that is asked for changes of topics answered, as the object says it.

Only the cluster has the last word, and what it says is what a person must read. What it refused is asked for again now and
then: time, or somebody, may have put it right. Until there is another answer the object says what it said before.
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


def answered(finding: Finding, resource: KafkaTopic, context: Context) -> Finding:
    """A finding without the steps that were asked for in vain in this look, and why they were."""
    in_vain = [reply for reply in context.topics if any(_is_answer_to(step, reply) for step in finding.steps)]
    if in_vain:
        verdict, retry_s = _verdict(in_vain[0])
        steps = tuple(step for step in finding.steps if not any(_is_answer_to(step, reply) for reply in in_vain))
        verdict = replace(verdict, others=finding.verdict.others)
        return replace(finding, verdict=verdict, steps=steps, notices=(), look_again_in_s=retry_s)
    if finding.steps and not context.topics and (before := _said_before(resource)) is not None:
        return replace(finding, verdict=replace(before, others=finding.verdict.others))
    return finding


def _is_answer_to(step: Step, reply: TopicReply) -> bool:
    """Whether it would come to nothing again. A step that is another by now, as a broker has gone meanwhile, is not what
    was refused."""
    if reply.trouble is not None:
        return type(step) is type(reply.step)
    return reply.refused is not None and step == reply.step


def _verdict(reply: TopicReply) -> tuple[Verdict, float]:
    if reply.trouble is not None:
        message = f"the controller could not be asked: {reply.trouble}"
        return Verdict.working(Reason.BROKERS_UNAVAILABLE, message), _TROUBLE_RETRY_S
    return Verdict.stalled(Reason.REQUEST_REFUSED, f"the cluster refuses it: {reply.refused}"), _REFUSAL_RETRY_S


def _said_before(resource: KafkaTopic) -> Verdict | None:
    """What is said of a request that was in vain and is made again: nothing new, until there is an answer."""
    ready, stalled = (resource.status.condition(type_) for type_ in (ConditionType.READY, ConditionType.STALLED))
    if ready is None or ready.reason not in _STICKY or ready.observed_generation != resource.metadata.generation:
        return None
    return (Verdict.working if stalled is None else Verdict.stalled)(ready.reason, ready.message)
