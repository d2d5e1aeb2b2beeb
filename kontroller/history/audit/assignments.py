"""What must hold of the assigned replicas (AR) of a partition, and of its leadership together with them.

AR and ISR are in two znodes, and one of them is written first: for a moment an ISR may have members that are not assigned.
So what must hold of both is asked only of what stayed so: `is_long`.
"""

from typing import Final

from kontroller.history.audit.invariants import Invariant

PATIENCE_SECONDS: Final = 60
"""For how long two znodes may say different things, while a controller or its successor is at work."""

_TARGET: Final = "filter(assigned_was.replicas, broker -> NOT array_contains(assigned_was.removing, broker))"
_RAN: Final = "(size(assigned_was.adding) > 0 OR size(assigned_was.removing) > 0)"
_RUNS: Final = "(size(assigned.adding) > 0 OR size(assigned.removing) > 0)"

INVARIANTS: Final = (
    Invariant(
        id="AssignmentNamesEachOnce",
        broken="kind = 'assignment' AND size(array_distinct(assigned.replicas)) < size(assigned.replicas)",
        detail="the assigned replicas {assigned.replicas} name a broker twice",
    ),
    Invariant(
        id="AssignmentHoldsBoth",
        broken="kind = 'assignment' AND (size(array_except(assigned.adding, assigned.replicas)) > 0 "
        "OR size(array_except(assigned.removing, assigned.replicas)) > 0 "
        "OR arrays_overlap(assigned.adding, assigned.removing))",
        detail="while a reassignment runs all its replicas are assigned, and none both comes and goes: "
        "replicas {assigned.replicas}, adding {assigned.adding}, removing {assigned.removing}",
        evidence=("assigned_was_record",),
    ),
    Invariant(
        id="TargetIsInSync",
        broken="kind = 'assignment' AND NOT snapshot AND NOT inferred AND span <=> was_span AND now IS NOT NULL "
        f"AND {_RAN} AND NOT {_RUNS} AND size(assigned_was.removing) > 0 "
        f"AND array_sort(assigned.replicas) = array_sort({_TARGET}) AND size(array_except(assigned.replicas, now.isr)) > 0",
        detail="a reassignment from {assigned_was.replicas} to {assigned.replicas} ended, and the ISR was {now.isr}: "
        "replicas were given up before others had what they have",
        evidence=("assigned_was_record", "was_record"),
    ),
    Invariant(
        id="IsrIsAssigned",
        broken="origin <> 'logs' AND size(array_except(now.isr, assigned.replicas)) > 0 AND is_long",
        detail="for {CAST(lasts_seconds AS BIGINT)} seconds and longer the ISR {now.isr} has members that are not "
        "assigned: {assigned.replicas}",
        evidence=("assigned_record", "now_record"),
    ),
    Invariant(
        id="LeaderIsAssigned",
        broken="now.leader >= 0 AND NOT array_contains(assigned.replicas, now.leader) AND is_long",
        detail="for {CAST(lasts_seconds AS BIGINT)} seconds and longer broker {now.leader} leads, which is not assigned: "
        "{assigned.replicas}",
        evidence=("assigned_record", "now_record"),
        broker="now.leader",
    ),
)
