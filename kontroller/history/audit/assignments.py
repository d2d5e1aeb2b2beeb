"""Invariants of the assigned replicas (AR) of a partition, and of its leadership together with them.

AR and ISR are in two znodes, and one of them is written first, so an ISR may briefly have unassigned members. Therefore
invariants of both apply only to states that last: `is_long`.
"""

from typing import Final

from kontroller.history.audit.invariants import Invariant

PATIENCE_SECONDS: Final = 60
"""The time for which two znodes may contradict each other while a controller or its successor is at work."""

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
        detail="a reassignment must keep all its replicas assigned, and must not add and remove the same one: "
        "replicas {assigned.replicas}, adding {assigned.adding}, removing {assigned.removing}",
        evidence=("assigned_was_record",),
    ),
    Invariant(
        id="TargetIsInSync",
        broken="kind = 'assignment' AND NOT snapshot AND NOT inferred AND span <=> was_span AND now IS NOT NULL "
        f"AND {_RAN} AND NOT {_RUNS} AND size(assigned_was.removing) > 0 "
        f"AND array_sort(assigned.replicas) = array_sort({_TARGET}) AND size(array_except(assigned.replicas, now.isr)) > 0",
        detail="a reassignment from {assigned_was.replicas} to {assigned.replicas} ended, and the ISR was {now.isr}: "
        "replicas were removed before the others had their data",
        evidence=("assigned_was_record", "was_record"),
    ),
    Invariant(
        id="IsrIsAssigned",
        broken="origin <> 'logs' AND size(array_except(now.isr, assigned.replicas)) > 0 AND is_long",
        detail="for at least {CAST(lasts_seconds AS BIGINT)} seconds the ISR {now.isr} has members that are not "
        "assigned: {assigned.replicas}",
        evidence=("assigned_record", "now_record"),
    ),
    Invariant(
        id="LeaderIsAssigned",
        broken="now.leader >= 0 AND NOT array_contains(assigned.replicas, now.leader) AND is_long",
        detail="for at least {CAST(lasts_seconds AS BIGINT)} seconds broker {now.leader} leads, which is not assigned: "
        "{assigned.replicas}",
        evidence=("assigned_record", "now_record"),
        broker="now.leader",
    ),
)
