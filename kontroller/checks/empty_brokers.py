"""Checks that brokers hold no replicas, so that they can be shut down for good."""

from collections.abc import Iterable
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse

from controller_core.client.errors import AdminError
from controller_core.client.snapshot import read_snapshot
from controller_core.client.transport.request_client import ClusterClient
from controller_core.model.ids import BrokerId
from controller_core.model.wording import format_count, list_some
from controller_core.wire.requests.metadata import ALL_TOPICS
from kontroller.checks.waiting import NotWell

_HIDES_NOTHING: Final = frozenset({
    ErrorCode.none,
    ErrorCode.unknown_topic_or_partition,
    ErrorCode.leader_not_available,
})  # fmt: skip
"""Errors of topics that are being created or deleted. Any other error hides the replicas of its topic."""


class ReplicasLeft(Exception):
    """Brokers hold replicas. The message says how many, and how to move them away."""


async def look_for_replicas(client: ClusterClient, brokers: Iterable[BrokerId]) -> str:
    """Return one line that says that the brokers hold nothing. Raises `ReplicasLeft`, and `NotWell` if nobody knows."""
    try:
        metadata = await client.ask_any(ALL_TOPICS, MetadataResponse)
    except AdminError as error:
        raise NotWell(f"no broker says what the brokers hold: {error}") from error
    hidden = [str(topic.name) for topic in metadata.topics if topic.error_code not in _HIDES_NOTHING]
    if hidden:
        raise NotWell(f"the replicas of some topics are not shown: {list_some(hidden)}")
    ending = sorted(set(brokers))
    ids = ", ".join(map(str, ending))
    partitions = read_snapshot(metadata).list_partitions()
    left = [place.partition for place in partitions if set(place.replicas).intersection(ending)]
    if left:
        raise ReplicasLeft(
            f"{'broker' if len(ending) == 1 else 'brokers'} {ids} still {'has' if len(ending) == 1 else 'have'} "
            f"replicas of"
            f" {format_count(len(left), 'partition')}, which would be lost: {list_some(left)}. Move them away first: create"
            f" a PartitionReassignment with drainBrokers: [{ids}], wait until it is Complete, and try again"
        )
    return f"{'broker' if len(ending) == 1 else 'brokers'} {ids} {'holds' if len(ending) == 1 else 'hold'} no replicas"
