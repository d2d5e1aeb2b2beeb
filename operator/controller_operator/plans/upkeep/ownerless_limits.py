"""Throttles in a cluster without ZooKeeper whose PartitionReassignments are gone: first a warning, then the removal.

An object removes its throttle before it ends. If somebody takes its finalizer off by hand, nothing else removes the
throttle, because Kafka's own controllers know nothing of it, and it slows replicas for good. Three conditions protect
throttles of others: this operator's mark, ten minutes after the warning, and no moving partition of the throttle. The
last one protects an object of another operator, which has a throttle only while some of it moves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from controller_core.model.ids import TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_operator.kafka.marked_throttles import Entry, find_marked_partitions
from controller_operator.kafka.throttle_steps import RemoveThrottle
from controller_operator.plans.outcome import Context, Notice
from controller_operator.resources.cluster import MAX_OWNERLESS_LIMITS, MAX_TOPICS_OF_LIMIT, OwnerlessLimit

REMOVED_AFTER: Final = timedelta(minutes=10)
IsOwned = Callable[[str], bool]
"""Returns True if the object that set a throttle exists, or may exist; by the owner's name in Kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsPlan:
    """The rows to show, the steps to take and the notices to post."""

    rows: tuple[OwnerlessLimit, ...]
    steps: tuple[RemoveThrottle, ...] = ()
    notices: tuple[Notice, ...] = ()
    look_again_in_s: float | None = None


def plan_ownerless_limits(
    before: tuple[OwnerlessLimit, ...],
    found: tuple[Entry, ...] | None,
    view: Snapshot,
    is_owned: IsOwned,
    context: Context,
) -> LimitsPlan:
    """Return the work on throttles without an owner. `found`: all marked throttles; None if they are not known."""
    if found is None:
        return LimitsPlan(rows=before)
    removed = {step.owner for step in context.done if isinstance(step, RemoveThrottle)}
    since = {row.owner: min(row.since, context.now) for row in before}
    ownerless = [each for each in found if each.owner not in removed and not is_owned(each.owner)]
    marked = find_marked_partitions({name: topic.config for name, topic in view.topics.items()} if ownerless else {})
    judged = [_judge(each, marked.get(each.mark, frozenset()), since, view, context) for each in ownerless]
    warned = [_warn(each.row) for each in judged if each.row.owner not in since]
    told = [_removal(row) for row in before if row.owner in removed]
    waits = [each.due_in_s for each in judged if each.due_in_s > 0]
    return LimitsPlan(
        rows=tuple(each.row for each in judged[:MAX_OWNERLESS_LIMITS]),
        steps=tuple(each.step for each in judged[:MAX_OWNERLESS_LIMITS] if each.step is not None),
        notices=(*warned, *told),
        look_again_in_s=min(waits, default=None),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    row: OwnerlessLimit
    step: RemoveThrottle | None
    due_in_s: float


def _judge(
    entry: Entry,
    partitions: frozenset[TopicPartition],
    since: dict[str, datetime],
    view: Snapshot,
    context: Context,
) -> _Judged:
    warned_at = since.get(entry.owner, context.now)
    due_at = warned_at + REMOVED_AFTER
    trouble = next((each.trouble for each in context.throttles if each.step.owner == entry.owner), None)
    obstacle = _obstacle(partitions, view) or (f"cannot be removed: {trouble}" if trouble is not None else None)
    row = OwnerlessLimit(
        owner=entry.owner,
        bytes_per_second=entry.bytes_per_second,
        topics=tuple(sorted({str(each.topic) for each in partitions})[:MAX_TOPICS_OF_LIMIT]),
        since=warned_at,
        message=obstacle or f"is removed after {due_at:%Y-%m-%dT%H:%M:%SZ}",
    )
    due_in_s = (due_at - context.now).total_seconds()
    step = RemoveThrottle(owner=entry.owner, partitions=partitions) if due_in_s <= 0 and obstacle is None else None
    return _Judged(row=row, step=step, due_in_s=due_in_s)


def _obstacle(partitions: frozenset[TopicPartition], view: Snapshot) -> str | None:
    """Return why a throttle stays for now."""
    moving = sorted(
        each for each in partitions if (to := view.assignment_of(each)) is not None and to.is_being_reassigned
    )
    if moving:
        return f"stays while {list_some(moving)} of it moves"
    hidden = sorted(name for name, topic in view.topics.items() if not topic.is_config_known)
    if hidden:
        return f"stays, because the brokers do not tell the operator the configuration of {list_some(hidden)}"
    return None


def _warn(row: OwnerlessLimit) -> Notice:
    slows = f"slows replicas of {list_some(row.topics)}" if row.topics else "slows no replicas"
    message = (
        f"{_limit(row)} {slows}, and that object is gone: the limit {row.message}. To remove it now: kontroller reassign "
        f"limits --remove {row.owner}"
    )
    return Notice(reason="LimitWithoutOwner", message=message, is_warning=True, occurrence=str(row.since))


def _removal(row: OwnerlessLimit) -> Notice:
    return Notice(reason="LimitRemoved", message=f"{_limit(row)} is removed", occurrence=str(row.since))


def _limit(row: OwnerlessLimit) -> str:
    name = row.owner.rpartition("/")[0]
    return f"the limit of {row.bytes_per_second} bytes a second that PartitionReassignment {name} has set"
