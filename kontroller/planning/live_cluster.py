"""Compares a snapshot of loads with the cluster as it is now. A plan is only for the cluster that it was made of."""

from collections.abc import Iterator
from typing import Final

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.snapshot import Snapshot
from controller_core.model.wording import list_some
from controller_planner.loads import LoadSnapshot

_MOST_NAMED: Final = 3


class ClusterChangedError(Exception):
    """The cluster is not the one of the snapshot any more. The message says what differs, and what to do."""


def require_unchanged(snapshot: LoadSnapshot, live: Snapshot) -> None:
    """Raise `ClusterChangedError` if replicas, brokers or racks differ. Leaders, ISRs and loads may differ."""
    if differences := [*_list_differences(snapshot, live)]:
        raise ClusterChangedError(
            f"the cluster has changed since the snapshot: {'; '.join(differences)}: take another snapshot"
        )


def _list_differences(snapshot: LoadSnapshot, live: Snapshot) -> Iterator[str]:
    brokers, partitions = snapshot.brokers, snapshot.partitions
    if snapshot.cluster_id and live.cluster_id and snapshot.cluster_id != live.cluster_id:
        yield f"it is another cluster, {live.cluster_id} and not {snapshot.cluster_id}"
        return
    before = {
        TopicPartition(TopicName(partitions.topics[topic]), PartitionId(number)): tuple(
            brokers.ids[[each for each in replicas if each >= 0]].tolist()
        )
        for topic, number, replicas in zip(
            partitions.topic.tolist(), partitions.number.tolist(), partitions.replicas.tolist(), strict=True
        )
    }
    now = {each.partition: each.replicas for each in live.list_partitions()}
    live_before = {
        BrokerId(each) for each, is_live in zip(brokers.ids.tolist(), brokers.is_live, strict=True) if is_live
    }
    for what, things in (
        ("down", sorted(live_before - live.brokers.keys())),
        ("new or back", sorted(live.brokers.keys() - live_before - {live.controller.id if live.controller else None})),
    ):
        if things:
            yield f"brokers are {what}: {list_some(things, _MOST_NAMED)}"
    racks = dict(zip(brokers.ids.tolist(), brokers.racks, strict=True))
    moved = [
        each for each in sorted(live_before & live.brokers.keys()) if (live.brokers[each].rack or None) != racks[each]
    ]
    if moved:
        yield f"brokers are in other racks: {list_some(moved, _MOST_NAMED)}"
    for what, found in (
        ("deleted", before.keys() - now.keys()),
        ("new", now.keys() - before.keys()),
        ("on other brokers", {each for each in before.keys() & now.keys() if before[each] != now[each]}),
    ):
        if found:
            yield f"partitions are {what}: {list_some(sorted(found), _MOST_NAMED)}"
