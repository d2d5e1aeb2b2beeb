"""Whether a broker does all it has to: it is a member of the cluster, and every replica that it has is in sync.

The next broker of a rolling restart may be stopped when this one is ready, and no earlier. A replica that cannot come
into sync because no member of its ISR is alive does not count: only another broker's start can change that, and where
pods start one after another that broker would wait for this one to be ready.
"""

from controller_core.model.broker_stop import counted, listed
from controller_core.model.cluster_picture import ClusterPicture, PartitionPlace
from controller_core.model.ids import BrokerId


def why_not_ready(picture: ClusterPicture, broker: BrokerId) -> str | None:
    """What a broker lacks, by what it tells itself; None where it is ready. A new broker has no replicas, and is."""
    if not picture.brokers:
        return f"broker {broker} knows no broker of its cluster yet: it waits for a controller to tell it"
    if broker not in picture.brokers:
        return f"broker {broker} is not registered: alive are {listed(sorted(picture.brokers))}"
    if picture.controller is None:
        return "no controller is known"
    replicas = picture.partitions_on(broker)
    behind = [place.partition for place in replicas if _is_behind(place, broker, picture.brokers)]
    if behind:
        return f"{len(behind)} of {counted(len(replicas), 'replica')} not in sync: {listed(behind)}"
    return None


def _is_behind(place: PartitionPlace, broker: BrokerId, alive: frozenset[BrokerId]) -> bool:
    return broker not in place.isr and any(member in alive for member in place.isr)
