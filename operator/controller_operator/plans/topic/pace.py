"""How often a topic that is changed elsewhere is put right.

A single change is put right at once. Where the topic is changed again and again, somebody else wants something else, and
two that never tire would write for ever: each write wakes all brokers. So the corrections of a topic are counted in its
status, and from the fourth one on each waits twice as long as the one before, up to five minutes. A topic that was left
alone for ten minutes begins anew, and so does a changed spec, as that is no correction. ZooKeeper does not record who
writes; what is known of the other is said.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from controller_core.model.wording import listed
from controller_operator.plans.outcome import Context, Notice, Verdict
from controller_operator.plans.topic.status import Finding
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.topic import DriftCorrections, KafkaTopic

AT_ONCE: Final = 3
"""So many corrections in a row wait for nothing."""
FIRST_PAUSE: Final = timedelta(seconds=2)
LONGEST_PAUSE: Final = timedelta(minutes=5)
CALM: Final = timedelta(minutes=10)
"""After a correction that held for so long the next one is the first."""


def paced(finding: Finding, resource: KafkaTopic, rivals: Sequence[str], context: Context) -> Finding:
    """A correction, counted, or the wait for it. `rivals` are other objects that may want the topic, as namespace/name."""
    if not finding.steps:
        return finding
    before = resource.status.corrections
    due = _due(before, context.now)
    if before is None or due is None or due <= context.now:
        return replace(finding, identity={**finding.identity, "corrections": _counted(before, context.now)})
    message = (
        f"put right {before.count} times in a row and changed elsewhere again: {_what(finding, resource)}; it is put right "
        f"again at {due:%H:%M:%S} UTC. {_who(rivals)}"
    )
    others = tuple(other for other in finding.verdict.others if other[0] is not ConditionType.DRIFTED)
    drifted = tuple((*other[:3], message) for other in finding.verdict.others if other[0] is ConditionType.DRIFTED)
    return replace(
        finding,
        verdict=replace(Verdict.working(Reason.DRIFT_CONTESTED, message), others=(*others, *drifted)),
        steps=(),
        notices=(Notice(reason="DriftContested", message=message, is_warning=True),),
        identity={},
        look_again_in_s=(due - context.now).total_seconds(),
    )


def _due(before: DriftCorrections | None, now: datetime) -> datetime | None:
    """When the next correction may be made; None where it needs no thought."""
    if before is None or before.count < AT_ONCE or now - before.last_time >= CALM:
        return None
    pause = FIRST_PAUSE * (1 << min(before.count - AT_ONCE, 16))
    return before.last_time + min(pause, LONGEST_PAUSE)


def _counted(before: DriftCorrections | None, now: datetime) -> DriftCorrections:
    is_calm = before is None or now - before.last_time >= CALM
    return DriftCorrections(count=1 if is_calm or before is None else before.count + 1, last_time=now)


def _what(finding: Finding, resource: KafkaTopic) -> str:
    if not finding.drift:
        return f"topic {resource.topic_name} was deleted"
    return listed(f"{each.key} is {each.live} instead of {each.desired}" for each in finding.drift)


def _who(rivals: Sequence[str]) -> str:
    if rivals:
        named = listed(rivals)
        return f"KafkaTopic {named} of another KafkaCluster has the same topic name: see whether both are one Kafka cluster"
    return "Find out who writes it (another operator, a script): ZooKeeper does not say"
