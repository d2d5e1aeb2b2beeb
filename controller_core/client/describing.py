"""Describes a cluster: its brokers, its controller, and its topics with their partitions."""

from dataclasses import replace

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.describe_quorum.v0 import DescribeQuorumResponse

from controller_core.client.cluster import Call
from controller_core.client.errors import Refused
from controller_core.client.quorum import knows_quorum, read_quorum
from controller_core.client.snapshot import read_snapshot
from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.model.snapshot import Controller, ControllerKind, Snapshot
from controller_core.wire.requests.api_versions import SERVER_VERSIONS
from controller_core.wire.requests.quorum import QUORUM_LEADER


async def describe(call: Call) -> Snapshot:
    """Describe the cluster as the first server that answers sees it."""
    snapshot = read_snapshot(await call.metadata(of_all=True))
    if not knows_quorum(await call.ask_any(SERVER_VERSIONS, ApiVersionsResponse)):
        return snapshot
    controller, voters = await _ask_quorum(call)
    return replace(snapshot, controller=controller, voters=voters)


async def _ask_quorum(call: Call) -> tuple[Controller | None, tuple[BrokerId, ...]]:
    """Return the leader of the quorum and its voters, as far as they are told. Brokers without ZooKeeper name any broker
    as the controller."""
    try:
        quorum = read_quorum(await call.ask_any(QUORUM_LEADER, DescribeQuorumResponse))
    except Refused:
        return None, ()
    if quorum.leader is None:
        return None, quorum.voters
    epoch = ControllerEpoch(quorum.epoch)
    return Controller(id=quorum.leader, epoch=epoch, kind=ControllerKind.KRAFT), quorum.voters
