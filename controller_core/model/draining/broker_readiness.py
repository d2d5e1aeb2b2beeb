"""Readiness of a broker: it is a member of the cluster, all of its replicas are in sync, and clients find it.

A rolling restart stops the next broker only after this one is ready, and this one then leads partitions. Clients that
cached the address of its former pod would try to connect there, and wait until that fails: 10 s or longer in Java.

Two kinds of replicas do not count, because something else decides how long they take, and waiting would hold up
restarts and evictions:

- replicas of partitions without a leader. They have nobody to fetch from until another broker starts or changes a disk.
  If pods start one after another, that broker would wait for this one to be ready;
- replicas that a reassignment adds here. They copy for hours, and nobody relies on them before they are in sync.
"""

import math
from collections.abc import Set

from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import format_count, list_some

NONE_ARRIVE: frozenset[TopicPartition] = frozenset()


def explain_not_ready(snapshot: Snapshot, broker: BrokerId, arriving: Set[TopicPartition] = NONE_ARRIVE) -> str | None:
    """Return what a broker lacks, by its own metadata; None if it is ready. A new broker without replicas is ready.

    `arriving` are the partitions that a reassignment adds to it.
    """
    if not snapshot.brokers:
        return f"broker {broker} knows no broker of its cluster yet: it waits for metadata from a controller"
    if broker not in snapshot.brokers:
        alive = list_some(sorted(snapshot.brokers))
        return f"broker {broker} is not registered, or shuts down: the live brokers are {alive}"
    if snapshot.controller is None:
        return "no controller is known, or it is not at the listener where the broker was asked"
    late = [partition for partition in find_behind(snapshot, broker) if partition not in arriving]
    if late:
        replicas = format_count(len(snapshot.list_partitions_on(broker)), "replica")
        return f"{len(late)} of {replicas} not in sync: {list_some(late)}"
    return None


def find_behind(snapshot: Snapshot, broker: BrokerId) -> tuple[TopicPartition, ...]:
    """Return the partitions whose replica on the broker is out of sync, although there is a leader to fetch from."""
    return tuple(
        place.partition
        for place in snapshot.list_partitions_on(broker)
        if broker not in place.isr and place.leader in snapshot.brokers
    )


def explain_hidden(snapshot: Snapshot, broker: BrokerId, remaining_s: float) -> str | None:
    """Return why clients may not find the broker yet; None if they do, or if it has no replica to lead.

    `remaining_s`: the time for which they may still have the address of its former pod.
    """
    if remaining_s <= 0 or not snapshot.list_partitions_on(broker):
        return None
    return f"in sync, but clients may have the address of its former pod for another {math.ceil(remaining_s)} s"
