"""Takes a snapshot of a live cluster."""

from collections.abc import Set

from controller_core.client.admin_client import AdminClient
from controller_core.client.loads.arrays import make_load_snapshot
from controller_core.client.loads.cluster_loads import ClusterLoads
from controller_core.model.ids import BrokerId
from controller_core.model.wording import format_count, list_some
from kontroller.planning.snapshot_file import StoredLoads


async def take_snapshot(
    admin: AdminClient, between_looks_s: float, closed: Set[BrokerId], timeout_ms: int | None
) -> StoredLoads:
    """Describe the loads of a cluster. `closed`: brokers that keep their replicas and take no new ones.

    Raises `AdminError` and `InvalidSnapshot`."""
    loads = await admin.describe_loads(between_looks_s=between_looks_s, timeout_ms=timeout_ms)
    return make_stored_loads(loads, closed)


def make_stored_loads(loads: ClusterLoads, closed: Set[BrokerId]) -> StoredLoads:
    """Return the snapshot, and what is unknown in it. Raises `InvalidSnapshot`."""
    troubles = list(loads.troubles)
    if missing := sorted(closed - {each.id for each in loads.brokers}):
        troubles.append(f"brokers that should take no replicas are not in the cluster: {list_some(missing)}")
    if loads.moving:
        count = format_count(len(loads.moving), "partition")
        troubles.append(f"{count} moving: the snapshot has the replicas after the move")
    return StoredLoads(snapshot=make_load_snapshot(loads, closed), troubles=tuple(troubles))
