"""Checks that a Kafka cluster has a controller: it is known, it answers, and all members agree on it.

Settings that differ between members are named, and are no failure: brokers may be restarting with a new file.

Without ZooKeeper the controller is the leader of a quorum, which only the quorum knows. There the members have to agree
on each other instead."""

from collections.abc import Mapping

from kio.schema.metadata.v11 import MetadataResponse

from controller_core.client.configs import read_shared_settings
from controller_core.client.errors import AdminError
from controller_core.client.quorum import Quorum, ask_quorum
from controller_core.client.reassigning.reassignments import list_reassignments
from controller_core.client.snapshot import read_snapshot
from controller_core.client.transport.request_client import Address, ClusterClient
from controller_core.model.draining.broker_stop import join_ids
from controller_core.model.ids import BrokerId
from controller_core.model.settings.differences import find_differences
from controller_core.model.snapshot import Snapshot
from controller_core.wire.requests.metadata import NO_TOPICS
from kontroller.checks.waiting import NotWell


async def look_at_cluster(client: ClusterClient) -> str:
    """Return a line that names the controller, and one for each setting that differs. Raises `NotWell`."""
    try:
        metadata = await client.ask_any(NO_TOPICS, MetadataResponse)
    except AdminError as error:
        raise NotWell(
            f"no server answers: {error}; give the address of a running broker with --bootstrap-server"
        ) from error
    snapshot = read_snapshot(metadata)
    if snapshot.controller is None:
        raise NotWell("no controller is known: check the logs of `kontroller controller run` and of the brokers")
    controller = snapshot.controller.id
    addresses = {
        number: Address(endpoint.host, endpoint.port)
        for number, broker in snapshot.brokers.items()
        for endpoint in broker.endpoints
    }
    try:
        await list_reassignments(client, ())  # every other server answers NOT_CONTROLLER
    except AdminError as error:
        raise NotWell(f"controller {controller} does not answer as the controller: {error}") from error
    quorum = await _ask_quorum(client)
    for member, address in sorted(addresses.items()):
        await _expect_agreement(client.restrict_to(address), member, snapshot, has_quorum=quorum is not None)
    members = join_ids(sorted(snapshot.brokers))
    if quorum is not None:
        found = (
            f"cluster {snapshot.cluster_id}: {quorum.leader} leads the quorum of controllers in epoch {quorum.epoch}, "
            f"and all of {members} know each other"
        )
    else:
        found = (
            f"cluster {snapshot.cluster_id}: {controller} at {addresses[controller]} is the controller, "
            f"say all of {members}"
        )
    return "\n".join((found, *await _compare_settings(client, addresses)))


async def _compare_settings(client: ClusterClient, addresses: Mapping[BrokerId, Address]) -> list[str]:
    """Return a line for each setting in the members' files that differs, and for each member that did not return
    them."""
    configs: dict[BrokerId, Mapping[str, str]] = {}
    troubles = []
    for member, address in sorted(addresses.items()):
        try:
            configs[member] = await read_shared_settings(client.restrict_to(address).ask_any, member)
        except AdminError as error:
            troubles.append(f"settings of {member} are not known: {error}")
    return [*(f"settings differ: {each}" for each in find_differences(configs)), *troubles]


async def _ask_quorum(client: ClusterClient) -> Quorum | None:
    try:
        quorum = await ask_quorum(client)
    except AdminError as error:
        raise NotWell(str(error)) from error
    if quorum is not None and quorum.leader is None:
        raise NotWell("the quorum of controllers has no leader: check their logs")
    return quorum


async def _expect_agreement(client: ClusterClient, member: BrokerId, expected: Snapshot, *, has_quorum: bool) -> None:
    try:
        snapshot = read_snapshot(await client.ask_any(NO_TOPICS, MetadataResponse))
    except AdminError as error:
        raise NotWell(f"{member} is a member of the cluster and does not answer: {error}") from error
    controller, other = (each.controller.id if each.controller else None for each in (snapshot, expected))
    if not has_quorum and controller != other:
        raise NotWell(f"{member} believes that {controller} is the controller, others believe {other}")
    if snapshot.brokers.keys() != expected.brokers.keys():
        known, others = join_ids(sorted(snapshot.brokers)), join_ids(sorted(expected.brokers))
        raise NotWell(f"{member} knows the members {known}, others {others}")
