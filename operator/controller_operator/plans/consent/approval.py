"""The approval of a plan: what needs approval waits for it, and an approval holds for one plan only."""

import json
from datetime import datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple

from controller_operator.plans.outcome import Notice, Verdict
from controller_operator.resources.approval import HASH_DIGITS
from controller_operator.resources.common import Status
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason

_COMPACT: Final = (",", ":")
_HOUR_S: Final = 3_600.0


class Reminder(NamedTuple):
    """The event about a plan that waits for approval, and the seconds until the next one."""

    notice: Notice
    look_again_in_s: float


def hash_plan(content: Any) -> str:
    """Return the hash of a plan. `content`: everything that its approval is for, as JSON values."""
    return sha256(json.dumps(content, separators=_COMPACT).encode()).hexdigest()[:HASH_DIGITS]


def explain_missing_approval(what: str, due: str | None, given: str | None, instead: str = "") -> Verdict | None:
    """Return why a plan is not carried out; None if it needs no approval (`due` is None), or this very one is approved.

    `what`: the plan, in words; `instead`: the way to end the wait without approval, in words."""
    if due is None or due == given:
        return None
    other = f"; approvedPlan {given} is another plan" if given else ""
    message = f"{what} waits for approval: set approvedPlan to {due}, as `kubectl kontroller approve` does{other}"
    if instead:
        message += (
            f". With the chart's approvalPolicy, only users with the verb approve may. Without approval: {instead}"
        )
    paused = (ConditionType.PAUSED, ConditionStatus.TRUE, Reason.AWAITING_APPROVAL, message)
    return Verdict(ready=ConditionStatus.FALSE, reason=Reason.AWAITING_APPROVAL, message=message, others=(paused,))


def remind(missing: Verdict, due: str | None, status: Status, now: datetime) -> Reminder:
    """Return the event about a missing approval. It is renewed each hour.

    The wait began when the status first showed it."""
    shown = status.condition(ConditionType.PAUSED)
    since = shown.last_transition_time if shown is not None and shown.reason is Reason.AWAITING_APPROVAL else now
    hours, rest_s = divmod(max(0.0, (now - since).total_seconds()), _HOUR_S)
    notice = Notice(reason=Reason.AWAITING_APPROVAL, message=missing.message, series=str(due), count=1 + int(hours))
    return Reminder(notice, _HOUR_S - rest_s)
