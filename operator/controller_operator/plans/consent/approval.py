"""The approval of a plan: what needs approval waits for it, and an approval holds for one plan only."""

import json
from hashlib import sha256
from typing import Any, Final

from controller_operator.plans.outcome import Verdict
from controller_operator.resources.approval import HASH_DIGITS
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason

_COMPACT: Final = (",", ":")


def hash_plan(content: Any) -> str:
    """Return the hash of a plan. `content`: everything that its approval is for, as JSON values."""
    return sha256(json.dumps(content, separators=_COMPACT).encode()).hexdigest()[:HASH_DIGITS]


def explain_missing_approval(what: str, due: str | None, given: str | None) -> Verdict | None:
    """Return why a plan is not carried out; None if it needs no approval (`due` is None), or this very one is approved.

    `what`: the plan, in words."""
    if due is None or due == given:
        return None
    other = f"; approvedPlan {given} is another plan" if given else ""
    message = f"{what} waits for approval: set approvedPlan to {due}, as `kubectl kontroller approve` does{other}"
    paused = (ConditionType.PAUSED, ConditionStatus.TRUE, Reason.AWAITING_APPROVAL, message)
    return Verdict(ready=ConditionStatus.FALSE, reason=Reason.AWAITING_APPROVAL, message=message, others=(paused,))
