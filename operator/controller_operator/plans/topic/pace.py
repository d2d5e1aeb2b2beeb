"""A topic that is changed elsewhere again and again is put right ever more rarely (`plans/pace`), and the object says why.

No cluster records who writes; what is known of the other is said.
"""

from collections.abc import Sequence
from dataclasses import replace

from controller_core.model.wording import listed
from controller_operator.plans.outcome import Context, Notice, Verdict
from controller_operator.plans.pace import counted, due
from controller_operator.plans.topic.differences import differing
from controller_operator.plans.topic.status import Finding
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.topic import KafkaTopic


def paced(finding: Finding, resource: KafkaTopic, rivals: Sequence[str], context: Context) -> Finding:
    """A correction, counted, or the wait for it. `rivals` are other objects that may want the topic, as namespace/name."""
    if not finding.steps:
        return finding
    before = resource.status.corrections
    at = due(before, context.now)
    if before is None or at is None:
        return replace(finding, identity={**finding.identity, "corrections": counted(before, context.now)})
    message = (
        f"put right {before.count} times in a row and changed elsewhere again: {_what(finding, resource)}; it is put right "
        f"again at {at:%H:%M:%S} UTC. {_who(rivals)}"
    )
    others = tuple(other for other in finding.verdict.others if other[0] is not ConditionType.DRIFTED)
    drifted = tuple((*other[:3], message) for other in finding.verdict.others if other[0] is ConditionType.DRIFTED)
    return replace(
        finding,
        verdict=replace(Verdict.working(Reason.DRIFT_CONTESTED, message), others=(*others, *drifted)),
        steps=(),
        notices=(Notice(reason="DriftContested", message=message, is_warning=True),),
        identity={},
        look_again_in_s=(at - context.now).total_seconds(),
    )


def _what(finding: Finding, resource: KafkaTopic) -> str:
    if not finding.drift:
        return f"topic {resource.topic_name} was deleted"
    return differing(finding.drift)


def _who(rivals: Sequence[str]) -> str:
    if rivals:
        named = listed(rivals)
        return f"KafkaTopic {named} of another KafkaCluster has the same topic name: see whether both are one Kafka cluster"
    return "Find out who writes it (another operator, a script): the cluster does not say"
