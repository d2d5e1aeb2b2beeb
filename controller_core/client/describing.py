"""Describes a cluster: its brokers, its controller, and its topics with their partitions."""

from dataclasses import replace

from controller_core.client.cluster import Call
from controller_core.client.errors import Refused
from controller_core.client.quorum import ask_quorum
from controller_core.client.snapshot import read_snapshot
from controller_core.model.ids import ControllerEpoch
from controller_core.model.snapshot import Controller, ControllerKind, Snapshot


async def describe(call: Call) -> Snapshot:
    """Describe the cluster as the first server that answers sees it.

    Brokers without ZooKeeper name any broker as the controller, so the leader of the quorum replaces it."""
    snapshot = read_snapshot(await call.metadata(of_all=True))
    try:
        quorum = await ask_quorum(call.target_any())
    except Refused:
        return replace(snapshot, controller=None)
    if quorum is None:
        return snapshot
    if quorum.leader is None:
        return replace(snapshot, controller=None, voters=quorum.voters)
    controller = Controller(id=quorum.leader, epoch=ControllerEpoch(quorum.epoch), kind=ControllerKind.KRAFT)
    return replace(snapshot, controller=controller, voters=quorum.voters)
