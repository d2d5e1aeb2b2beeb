"""The backoff of corrections of a topic that changes elsewhere again and again (`plans/pace`), and its message.

No cluster records the author of a change, so the message says what is known of the other party.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from controller_core.model.wording import list_some
from controller_operator.plans.outcome import Verdict
from controller_operator.plans.pace import count_correction, find_due_time, make_contested_notice
from controller_operator.plans.topic.case import Case, Finding
from controller_operator.plans.topic.differences import describe_differences
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.topic import KafkaTopic

_CORRECTIONS: Final = ("DriftCorrected", "TopicDeleted")
"""Reasons of events about corrections."""


def pace_correction(finding: Finding, case: Case) -> Finding:
    """Return the finding with its correction counted, or replaced by a wait."""
    if not finding.steps:
        return finding
    resource, context = case.resource, case.context
    before = resource.status.corrections
    at = find_due_time(before, context.now)
    if before is None or at is None:
        now = count_correction(before, context.now)
        notices = tuple(
            replace(each, series=now.series, count=now.count) if each.reason in _CORRECTIONS else each
            for each in finding.notices
        )
        return replace(finding, notices=notices, identity={**finding.identity, "corrections": now})
    message = (
        f"corrected {before.count} times in a row and changed elsewhere again: {_describe_drift(finding, resource)}; next "
        f"correction at {at:%H:%M:%S} UTC. {_describe_rivals(case.around.rivals)}"
    )
    others = tuple(other for other in finding.verdict.others if other[0] is not ConditionType.DRIFTED)
    drifted = tuple((*other[:3], message) for other in finding.verdict.others if other[0] is ConditionType.DRIFTED)
    return replace(
        finding,
        verdict=replace(Verdict.make_working(Reason.DRIFT_CONTESTED, message), others=(*others, *drifted)),
        steps=(),
        notices=(make_contested_notice(before, message),),
        identity={},
        look_again_in_s=(at - context.now).total_seconds(),
    )


def _describe_drift(finding: Finding, resource: KafkaTopic) -> str:
    if not finding.drift:
        return f"topic {resource.topic_name} was deleted"
    return describe_differences(finding.drift)


def _describe_rivals(rivals: Sequence[str]) -> str:
    if rivals:
        named = list_some(rivals)
        return (
            f"KafkaTopic {named} of another KafkaCluster has the same topic name: check if both are one Kafka cluster"
        )
    return "Find out who writes it (another operator, a script): the cluster does not say"
