"""The throttle of the batches: a part of that of the spec, which adapts to the last batch.

A batch that disturbs the cluster makes followers of other partitions fall behind, so their leaders remove them from the
ISR. This batch and the next one are then slower; after a calm one the next is faster again. The status holds the
present part, and for each broker the fewest such replicas in any look since the batch began, so a restarted operator
goes on. A broker that recovers from something else hides no other one, and its own replicas count again once they are
back. Replicas on brokers that are down, or were started after the batch, say nothing about the batch. Copies that are
no faster than producers write are no sign either, because a lower throttle makes them worse.
"""

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from typing import Final

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count
from controller_operator.resources.cluster import BrokerState, BrokerStatus
from controller_operator.resources.conditions import ConditionType, Reason
from controller_operator.resources.reassignment import MIN_THROTTLE, PartitionReassignment, ReassignmentThrottle

_FULL: Final = 100
_SLOWEST: Final = 25
"""Percentage below which no batch is slowed down: if producers write faster than the throttle, no copy ever ends."""


def adapt_percent(percent: int | None, *, is_strained: bool | None) -> int | None:
    """Return the percentage of the spec's throttle for the next batch, by that of the last one. None is all of it.

    `is_strained`: True if the last batch disturbed the cluster or was stuck; None if that is unknown."""
    before = _FULL if percent is None else percent
    if is_strained is None:
        return percent
    after = max(_SLOWEST, before // 2) if is_strained else before * 2
    return after if after < _FULL else None


def find_rate(throttle: ReassignmentThrottle | None, percent: int | None) -> int | None:
    """Return the bytes per second of a batch; None without a throttle."""
    if throttle is None:
        return None
    return max(MIN_THROTTLE, throttle.bytes_per_second * (_FULL if percent is None else percent) // _FULL)


def count_out_of_sync(view: Snapshot, moving: Container[TopicPartition]) -> Counter[BrokerId]:
    """Return the number of replicas that are not in the ISR, for each live broker.

    `moving`: the partitions of the plan, which do not count. Nor do other partitions that move, and those without a
    leader, which nobody can follow."""
    return Counter(
        broker
        for topic in view.topics.values()
        if topic.counts.under_replicated and topic.name not in view.deleting
        for each in topic.list_partitions()
        if each.leader is not None and not each.assignment.is_being_reassigned and each.partition not in moving
        for broker in view.brokers.keys() & {*each.replicas} - {*each.isr}
    )


def explain_strain(
    before: Mapping[BrokerId, int],
    now: Mapping[BrokerId, int],
    move: PartitionReassignment,
    view: Snapshot,
    brokers: Sequence[BrokerStatus],
) -> str | None:
    """Return why this batch and the next one are to be slower; None if there is no reason.

    `before` and `now`: the replicas out of sync since the batch began, and in this look; `brokers`: those in the
    KafkaCluster's status."""
    late = {row.id for row in brokers if _is_late(row, move.status.start_time, view)}
    lost = sum(max(0, count - before.get(broker, 0)) for broker, count in now.items() if broker not in late)
    if lost > 0:
        verb = "is" if lost == 1 else "are"
        return f"{format_count(lost, 'replica')} of other partitions {verb} out of sync on live brokers since it began"
    ready = move.status.condition(ConditionType.READY)
    return f"it was stuck: {ready.message}" if ready is not None and ready.reason is Reason.COPY_STALLED else None


def _is_late(row: BrokerStatus, began: datetime | None, view: Snapshot) -> bool:
    """Return True if a broker was down when the batch began, or has been since. Its row may be older than the view."""
    broker = view.brokers.get(row.id)
    is_restarted = broker is not None and row.epoch not in (None, broker.epoch)
    is_new = row.since is not None and began is not None and row.since >= began
    return row.state is not BrokerState.REGISTERED or is_restarted or is_new
