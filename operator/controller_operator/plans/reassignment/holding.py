"""The reasons to hold back partitions that have not begun to move: `suspend`, or no open window.

In both cases running moves continue to their end, and the object is suspended. A deletion is not held back.
"""

from controller_operator.plans.outcome import Verdict
from controller_operator.plans.reassignment.rows import Rows, count_steps
from controller_operator.plans.timing.windows import Opening
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.reassignment import PartitionReassignment


def find_hold(move: PartitionReassignment, rows: Rows, present: Opening) -> Verdict | None:
    """Return why no further partition begins; None if nothing holds them back, or no partition is left to begin."""
    return find_suspension(move, rows) or find_closed_window(rows, present)


def find_suspension(move: PartitionReassignment, rows: Rows) -> Verdict | None:
    """Return the verdict on a suspended object; None for any other."""
    return _make_verdict(Reason.SUSPENDED, "spec.suspend is true", rows) if move.spec.suspend else None


def find_closed_window(rows: Rows, present: Opening) -> Verdict | None:
    """Return the verdict on an object whose partitions wait for a window; None if none wait."""
    if present.is_open or not count_steps(rows).waiting:
        return None
    if present.changes_at is None:
        return Verdict.make_stalled(Reason.INVALID_SCHEDULE, f"no partition begins to move: {present.trouble}")
    return _make_verdict(Reason.OUTSIDE_WINDOW, f"no window opens before {present.changes_at:%Y-%m-%dT%H:%M:%SZ}", rows)


def _make_verdict(reason: Reason, why: str, rows: Rows) -> Verdict:
    counts = count_steps(rows)
    message = (
        f"{counts.waiting} partitions do not begin to move, because {why}; {counts.moving} that have begun go on to their"
        " end"
    )
    paused = (ConditionType.PAUSED, ConditionStatus.TRUE, reason, message)
    return Verdict(ready=ConditionStatus.FALSE, reason=reason, message=message, others=(paused,))
