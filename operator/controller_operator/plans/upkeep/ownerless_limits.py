"""Removal of throttles whose PartitionReassignments are gone, in a cluster without ZooKeeper.

An object removes its throttle before it ends. If somebody takes its finalizer off by hand, nothing else would remove
the throttle, because Kafka's own controllers know nothing of it, and it would slow replicas for good.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from controller_operator.kafka.throttle_steps import RemoveThrottle
from controller_operator.plans.outcome import Context, Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsPlan:
    """The steps to take and the notices to post."""

    steps: tuple[RemoveThrottle, ...] = ()
    notices: tuple[Notice, ...] = ()


NO_LIMITS: Final = LimitsPlan()


def plan_ownerless_limits(ownerless: Collection[str], context: Context) -> LimitsPlan:
    """Return the removals of throttles without an owner. `ownerless`: the recorded owners that are gone.

    A removal that failed is tried again in the next reconciliation."""
    tried = {reply.step.owner: reply.trouble for reply in context.throttles}
    return LimitsPlan(
        steps=tuple(RemoveThrottle(owner=owner) for owner in sorted(ownerless) if owner not in tried),
        notices=tuple(_tell(owner, trouble) for owner, trouble in tried.items()),
    )


def _tell(owner: str, trouble: str | None) -> Notice:
    limit = f"the limit of PartitionReassignment {owner.rpartition('/')[0]}, which is gone,"
    if trouble is None:
        return Notice(reason="LimitRemoved", message=f"{limit} is removed", occurrence=owner)
    return Notice(
        reason="LimitStays", message=f"{limit} cannot be removed: {trouble}", is_warning=True, occurrence=owner
    )
