"""Reads the whole snapshot of a cluster once, without watches."""

from controller_core.model.snapshot import Snapshot
from controller_core.zk.session import ZkSession
from controller_core.zk.snapshots.known_znodes import LISTS, SINGLES, KnownZnodes


async def read_snapshot(zk: ZkSession) -> Snapshot:
    """Read the cluster. Raises `ZkError`."""
    known = KnownZnodes()
    due = list(SINGLES)
    for path, names in zip(LISTS, await zk.children_many(LISTS), strict=True):
        due += known.take_children(path, names or ())
    while due:
        nodes = await zk.read_many(due)
        due = [more for path, node in zip(due, nodes, strict=True) for more in known.take(path, node)]
    return known.take_snapshot()
