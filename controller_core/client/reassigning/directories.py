"""Log directories of a reassignment, as Kafka's tool handles them (KIP-113): directed before the partitions move, and
again when the replicas exist.

Brokers are asked about their directories first, so that a directory that a broker does not have is refused before
anything moves."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kio.schema.errors import ErrorCode

from controller_core.client.cluster import Call
from controller_core.client.errors import AdminError, OutcomeUnknown, PartlyRefused, Refused, Unreachable
from controller_core.client.log_dirs.log_sizes import BrokerClient, LogSizes, ask_log_sizes
from controller_core.client.log_dirs.placing import (
    ACCEPTED,
    Directories,
    Place,
    Placement,
    Places,
    group_by_broker,
    place_replicas,
)
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition

_BROKER_MS: Final = 2_000
"""Time limit of one broker for a look at its logs. A broker may hang in the middle of a move."""
ONLY_DIRECTORIES_MOVE: Final = (
    "no partition moves to other brokers, but replicas may have begun to move between directories"
)
_NOTHING_MOVES: Final = "nothing moves"


async def read_places(call: Call, asked: Mapping[BrokerId, Sequence[TopicPartition]]) -> Places:
    """Ask brokers for the sizes and directories of these replicas. A broker that does not answer is in the troubles.

    Brokers that are not known, or do not answer, are asked again if the cluster reports another address of theirs."""
    known = call.cluster.brokers
    told = await _ask_each(call, asked)
    if silent := [broker for broker, answer in told.items() if isinstance(answer, AdminError)]:
        await call.metadata()
        renewed = [broker for broker in silent if call.cluster.brokers.get(broker) != known.get(broker)]
        told |= await _ask_each(call, {broker: asked[broker] for broker in renewed})
    return Places(
        answers={broker: answer for broker, answer in told.items() if isinstance(answer, LogSizes)},
        troubles=tuple(f"broker {broker}: {error}" for broker, error in told.items() if isinstance(error, AdminError)),
    )


async def _ask_each(
    call: Call, asked: Mapping[BrokerId, Sequence[TopicPartition]]
) -> dict[BrokerId, LogSizes | AdminError]:
    async def ask(broker: BrokerId) -> LogSizes | AdminError:
        try:
            return await ask_log_sizes(asked[broker], _open_broker(call, broker, min(call.left_ms, _BROKER_MS)))
        except AdminError as error:
            return error

    return dict(zip(asked, await asyncio.gather(*map(ask, asked)), strict=True))


async def direct_replicas(call: Call, directories: Directories) -> None:
    """Ask brokers to put replicas into their directories. Raises `AdminError` before anything is asked if a broker does
    not answer, or cannot use a directory; and `PartlyRefused`."""
    if not directories:
        return
    places = await _find_places(call, directories)
    if places.troubles:
        raise Unreachable(
            f"log directories are not known: {'; '.join(places.troubles)}; {_NOTHING_MOVES}: start the broker, or write "
            '"any" for its directory'
        )
    unusable = [
        Refused(str(replica.topic_partition), ErrorCode.log_dir_not_found, why)
        for replica, directory in directories.items()
        if (why := places.explain_unusable(replica, directory)) is not None
    ]
    if unusable:
        raise PartlyRefused(tuple(unusable), _NOTHING_MOVES)
    elsewhere = {
        replica: directories[replica]
        for replica, found in _list_placements(directories, places).items()
        if found.place not in (Place.THERE, Place.COPYING)
    }
    if refused := await _ask_brokers(call, elsewhere):
        raise PartlyRefused(tuple(refused.values()), ONLY_DIRECTORIES_MOVE, begun=None)


async def return_replicas(call: Call, directories: Directories) -> set[TopicPartition]:
    """End the copying of replicas to these directories. Return the partitions that were copied. Raises `AdminError`."""
    if not directories:
        return set()
    places = await _find_places(call, directories)
    back = {
        replica: found.present
        for replica, found in _list_placements(directories, places).items()
        if found.place is Place.COPYING and found.present is not None
    }
    refused = await _ask_brokers(call, back)
    if troubles := [*places.troubles, *map(str, refused.values())]:
        raise AdminError(f"replicas may still be copied between log directories: {'; '.join(troubles)}")
    return {replica.topic_partition for replica in back}


@dataclass(slots=True)
class Follower:
    """Follows the replicas of a move to their directories, and asks again for those that brokers have put elsewhere."""

    directories: Directories
    _accepted: set[PartitionReplica] = field(default_factory=set)
    """Replicas that exist and whose request was accepted. If they are elsewhere later, somebody has ended the copying."""
    _missed: set[PartitionReplica] = field(default_factory=set)
    """Accepted replicas that the last look found elsewhere. One look may fall between two steps of a broker."""

    async def look(self, call: Call) -> bool:
        """Return True if no replica is on its way to its directory. Replicas that do not get there count as ended."""
        if not self.directories:
            return True
        found = await find_placements(call, self.directories)
        elsewhere = {replica for replica, each in found.items() if each.place is Place.ELSEWHERE}
        ended = elsewhere & self._accepted & self._missed
        self._missed = elsewhere & self._accepted
        again = {replica: self.directories[replica] for replica in elsewhere - self._accepted}
        try:
            ended |= (await _ask_brokers(call, again, self._accepted)).keys()
        except (Unreachable, OutcomeUnknown):
            return False  # the broker that has just answered is gone
        return all(each.place is Place.THERE or replica in ended for replica, each in found.items())


async def find_placements(call: Call, directories: Directories) -> dict[PartitionReplica, Placement]:
    """Ask the brokers for the places of these replicas."""
    return _list_placements(directories, await _find_places(call, directories)) if directories else {}


async def _find_places(call: Call, directories: Directories) -> Places:
    return await read_places(call, {broker: [*wanted] for broker, wanted in group_by_broker(directories).items()})


async def _ask_brokers(
    call: Call, directories: Directories, accepted: set[PartitionReplica] | None = None
) -> dict[PartitionReplica, Refused | OutcomeUnknown]:
    """Ask each broker to put its replicas into these directories, and return the refusals. Raises `AdminError`.

    `accepted` gets the replicas that exist and were accepted."""
    refused: dict[PartitionReplica, Refused | OutcomeUnknown] = {}
    for broker, wanted in group_by_broker(directories).items():
        for partition, result in (await place_replicas(wanted, _open_broker(call, broker, call.left_ms))).items():
            error = result.make_error(f"{partition} to {wanted[partition]} on broker {broker}")
            if error is None and accepted is not None:
                accepted.add(PartitionReplica(partition, broker))
            if error is not None and result.code not in ACCEPTED:
                refused[PartitionReplica(partition, broker)] = error
    return refused


def _list_placements(directories: Directories, places: Places) -> dict[PartitionReplica, Placement]:
    return {replica: places.find(replica, directory) for replica, directory in directories.items()}


def _open_broker(call: Call, broker: BrokerId, timeout_ms: int) -> BrokerClient:
    address = call.cluster.brokers.get(broker)
    if address is None:
        raise Unreachable("it is not registered")
    return call.cluster.client.restrict_to(address).replace_timeout(timeout_ms)
