"""The throttle that a KafkaTopic or a RebalancePlan gives to a PartitionReassignment of its own.

The status of the owner records the throttle that the move got last. The move gets another one when that of the owner
changes, so what a person sets on the move stays until then. The record follows after the move has the throttle, so an
operator that dies in between does both again.
"""

from controller_operator.plans.outcome import LimitMove
from controller_operator.resources.reassignment import PartitionReassignment, read_rate


def find_limit(move: PartitionReassignment, rate: int | None, given: int | None) -> LimitMove | None:
    """Return the step that gives an unfinished move the throttle of its owner; None if that has not changed.

    `rate`: the owner's throttle; `given`: the one that the move got last; None is no throttle. A lower one never makes a
    move faster that a person has slowed down."""
    if move.ending is not None or move.metadata.deletion_timestamp is not None or rate == given:
        return None
    present = read_rate(move.spec.throttle)
    if rate == present or not (_is_faster(rate, given) or _is_faster(present, rate)):
        return None
    return LimitMove(name=move.metadata.name, bytes_per_second=rate)


def _is_faster(rate: int | None, other: int | None) -> bool:
    """Return True if the first of two throttles lets more through; None is no throttle."""
    return other is not None and (rate is None or rate > other)
