"""The changes of a topic's configuration that can lose data. They wait for approval if the topic needs it.

`_HAZARDS` names them, and nothing else does. An unset key has a default of the brokers, which the operator does not
know: such a change counts as one that can lose data, unless no value could.
A new topic has no data yet, so only keys that endanger later records matter for it. min.insync.replicas is not among
them: acknowledged records are lost only with all in-sync disks, or by an unclean election, which needs approval itself.
An approval counts once: the hash of the next plan also covers the plan that was carried out last.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import inf
from typing import Final, NamedTuple

from controller_core.model.wording import list_some
from controller_operator.kafka.actions import AlterTopicConfig, CreateTopic
from controller_operator.plans.consent.approval import explain_missing_approval, hash_plan, remind
from controller_operator.plans.outcome import Notice, Step, Verdict
from controller_operator.resources.approval import Approval
from controller_operator.resources.topic import KafkaTopic

_TRUE: Final = "true"


class Loss(NamedTuple):
    """A change of a configuration that can lose data."""

    key: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        before, after = ("the default" if value is None else value for value in (self.before, self.after))
        return f"{self.key} from {before} to {after}"


def _becomes_true(before: str | None, after: str | None) -> bool:
    return _read_flag(before) != _TRUE and _read_flag(after) in (_TRUE, None)


def _gets_lower(before: str | None, after: str | None) -> bool:
    """Return True if a limit may get lower. Negative limits, and an unknown one before, count as none."""
    known = _read_limit(after)
    return known is None or known < (inf if (limit := _read_limit(before)) is None else limit)


def _adds_policy(before: str | None, after: str | None) -> bool:
    return after is None or not _read_list(after) <= _read_list(before)


_ELECTIONS: Final = "unclean.leader.election.enable"
_HAZARDS: Final[Mapping[str, Callable[[str | None, str | None], bool]]] = {
    _ELECTIONS: _becomes_true,
    "retention.ms": _gets_lower,
    "retention.bytes": _gets_lower,
    "cleanup.policy": _adds_policy,
    "remote.log.delete.on.disable": _becomes_true,
}
_HAZARDS_OF_NEW: Final = frozenset({_ELECTIONS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """The result of a question for approval."""

    missing: Verdict | None = None
    """The reason why the steps are not carried out; None if they may be."""
    record: Mapping[str, object] = field(default_factory=dict)
    """The fields of the status about approval."""
    notices: tuple[Notice, ...] = ()
    look_again_in_s: float | None = None


def ask_consent(resource: KafkaTopic, steps: Sequence[Step], live: Mapping[str, str], now: datetime) -> Consent:
    """Return if the steps for a topic may be carried out. `live`: its present configuration."""
    losses = find_losses(steps, live) if resource.spec.approval is Approval.REQUIRED else ()
    topic_id = None if any(isinstance(step, CreateTopic) for step in steps) else resource.status.topic_id
    content = [resource.topic_name, topic_id, *losses] if losses else None
    record = _record(resource, content)
    due = record["plan_hash"]
    what = f"the change of topic {resource.topic_name}, which can lose data ({list_some(map(str, losses))}),"
    missing = explain_missing_approval(what, due, resource.spec.approved_plan, "take the change back in the spec")
    if missing is None:
        return Consent(record=record)
    reminder = remind(missing, due, resource.status, now)
    return Consent(missing=missing, record=record, notices=(reminder.notice,), look_again_in_s=reminder.look_again_in_s)


def find_losses(steps: Sequence[Step], live: Mapping[str, str]) -> tuple[Loss, ...]:
    """Return the changes of these steps that can lose data."""
    found: list[Loss] = []
    for step in steps:
        match step:
            case CreateTopic(config=config):
                found += _find(dict.fromkeys(_HAZARDS_OF_NEW & config.keys()), config)
            case AlterTopicConfig(changes=changes):
                found += _find({key: live.get(key) for key in _HAZARDS.keys() & changes.keys()}, changes)
            case _:
                pass
    return tuple(sorted(found))


def _find(before: Mapping[str, str | None], after: Mapping[str, str | None]) -> list[Loss]:
    return [Loss(key, old, after[key]) for key, old in before.items() if _HAZARDS[key](old, after[key])]


def _record(resource: KafkaTopic, content: Sequence[object] | None) -> dict[str, str | None]:
    """Return the hash of the plan that is due, and of the approved one that is over."""
    status, used = resource.status, resource.status.used_plan
    due = None if content is None else hash_plan([*content, used])
    if status.plan_hash not in (None, due) and status.plan_hash == resource.spec.approved_plan:
        used = status.plan_hash
        due = None if content is None else hash_plan([*content, used])
    return {"plan_hash": due, "used_plan": used}


def _read_flag(value: str | None) -> str | None:
    return None if value is None else value.strip().lower()


def _read_limit(value: str | None) -> float | None:
    """Return a limit; None if it is not known."""
    try:
        limit = int(value or "")
    except ValueError:
        return None
    return limit if limit >= 0 else inf


def _read_list(value: str | None) -> set[str]:
    return {each.strip() for each in (value or "").split(",")} - {""}
