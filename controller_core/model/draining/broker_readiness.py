"""Whether a broker does all it has to: it is a member of the cluster, and every replica that it has is in sync.

The next broker of a rolling restart may be stopped when this one is ready, and no earlier. Two kinds of replicas do not
count, because waiting for them would hold up restarts and evictions for as long as something else takes:

- those whose partition nobody leads: there is nobody to fetch from, and only another broker's start or disk changes
  that. Where pods start one after another that broker would wait for this one to be ready;
- those that a reassignment brings here: they copy for hours, and nobody counts on them before they are in sync.
"""

from collections.abc import Set

from controller_core.model.draining.cluster_picture import ClusterPicture
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.model.wording import counted, listed

NONE_ARRIVE: frozenset[TopicPartition] = frozenset()


def why_not_ready(picture: ClusterPicture, broker: BrokerId, arriving: Set[TopicPartition] = NONE_ARRIVE) -> str | None:
    """What a broker lacks, by what it says itself; None where it is ready. A new broker has no replicas, and is.

    `arriving` are the partitions that a reassignment brings to it."""
    if not picture.brokers:
        return f"broker {broker} knows no broker of its cluster yet: it waits for a controller to tell it"
    if broker not in picture.brokers:
        return f"broker {broker} is not registered: alive are {listed(sorted(picture.brokers))}"
    if picture.controller is None:
        return "no controller is known, or it is not at the listener where the broker was asked"
    late = [partition for partition in behind(picture, broker) if partition not in arriving]
    if late:
        replicas = counted(len(picture.partitions_on(broker)), "replica")
        return f"{len(late)} of {replicas} not in sync: {listed(late)}"
    return None


def behind(picture: ClusterPicture, broker: BrokerId) -> tuple[TopicPartition, ...]:
    """The partitions of which a broker has a replica that is not in sync, although there is a leader to fetch from."""
    return tuple(
        place.partition
        for place in picture.partitions_on(broker)
        if broker not in place.isr and place.leader in picture.brokers
    )
