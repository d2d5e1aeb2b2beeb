"""What holds back the partitions that have not begun to move: `suspend`, or windows of which none is open.

Either way what has begun goes on to its end, and the object says that it is suspended. A deletion is not held back.
"""

from controller_operator.plans.outcome import Verdict
from controller_operator.plans.reassignment.rows import Rows, counted
from controller_operator.plans.reassignment.windows import Opening
from controller_operator.resources.conditions import ConditionStatus, ConditionType, Reason
from controller_operator.resources.reassignment import PartitionReassignment


def held(move: PartitionReassignment, rows: Rows, present: Opening) -> Verdict | None:
    """Why no further partition begins; None where nothing holds one back, or none is left that could begin."""
    return suspended(move, rows) or outside_window(rows, present)


def suspended(move: PartitionReassignment, rows: Rows) -> Verdict | None:
    """What a suspended object says; None for any other."""
    return _holding(Reason.SUSPENDED, "as spec.suspend is true", rows) if move.spec.suspend else None


def outside_window(rows: Rows, present: Opening) -> Verdict | None:
    """What an object says of which partitions wait for a window; None where none has to."""
    if present.is_open or not counted(rows).waiting:
        return None
    if present.changes_at is None:
        return Verdict.stalled(Reason.INVALID_SCHEDULE, f"no partition begins to move: {present.trouble}")
    return _holding(Reason.OUTSIDE_WINDOW, f"as no window opens before {present.changes_at:%Y-%m-%dT%H:%M:%SZ}", rows)


def _holding(reason: Reason, why: str, rows: Rows) -> Verdict:
    counts = counted(rows)
    message = (
        f"{why}, {counts.waiting} partitions do not begin to move; {counts.moving} that have begun go on to their end"
    )
    paused = (ConditionType.PAUSED, ConditionStatus.TRUE, reason, message)
    return Verdict(ready=ConditionStatus.FALSE, reason=reason, message=message, others=(paused,))
