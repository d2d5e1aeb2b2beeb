"""Replicas and the log directories that they are to have (KIP-113): their present place, and requests to move them.

A broker copies a replica to another of its directories beside the live log, and then replaces that one. If it has no
such replica yet, it remembers the directory until it creates the replica or restarts, so the same request is sent again
once the replica exists. A request for the replica's present directory ends the copying to another one.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from kio.schema.alter_replica_log_dirs.v2 import AlterReplicaLogDirsResponse
from kio.schema.errors import ErrorCode

from controller_core.client.log_dirs.log_sizes import BrokerClient, LogSizes
from controller_core.client.results import Result
from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicName, TopicPartition
from controller_core.model.wording import list_some
from controller_core.wire.requests.log_dirs import make_replica_log_dirs_request

Directories = Mapping[PartitionReplica, str]
"""The log directory that each replica is to have."""
ACCEPTED: Final = (ErrorCode.none, ErrorCode.replica_not_available)
"""The second one is the answer for a replica that does not exist yet. It will be created in the directory."""


class Place(StrEnum):
    """The place of a replica that is to have a certain directory."""

    THERE = "there"
    COPYING = "copying"
    """The broker copies it there."""
    ELSEWHERE = "elsewhere"
    """It is in another directory, and the broker does not copy it."""
    ABSENT = "absent"
    """The broker has no such replica yet."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The place of a replica, and the rest of its copying."""

    place: Place
    directory: str
    """The directory that it is to have."""
    bytes_left: int | None = 0
    """None if the broker did not answer."""
    offset_lag: int = 0
    """Offsets that the copy lacks, if it is being copied."""
    present: str | None = None
    """The directory that has the replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The answers of brokers about the directories of replicas, and a line about each broker that did not answer."""

    answers: Mapping[BrokerId, LogSizes] = field(default_factory=dict)
    troubles: tuple[str, ...] = ()

    def find(self, replica: PartitionReplica, directory: str) -> Placement:
        """Return the place of a replica that is to have this directory."""
        answer, partition = self.answers.get(replica.broker), replica.topic_partition
        if answer is None:
            return Placement(place=Place.UNKNOWN, directory=directory, bytes_left=None)
        present, future = answer.directory_of.get(partition), answer.futures.get(partition)
        if present is None:
            return Placement(place=Place.ABSENT if answer.are_all_seen else Place.UNKNOWN, directory=directory)
        if present == directory:
            return Placement(place=Place.THERE, directory=directory, present=present)
        size = answer.bytes_of[partition]
        if future is None or future.directory != directory:
            return Placement(place=Place.ELSEWHERE, directory=directory, bytes_left=size, present=present)
        left = max(0, size - future.bytes)
        return Placement(
            place=Place.COPYING, directory=directory, bytes_left=left, offset_lag=future.offset_lag, present=present
        )

    def explain_unusable(self, replica: PartitionReplica, directory: str) -> str | None:
        """Return why a broker cannot put a replica into this directory; None if it can, or did not answer."""
        answer = self.answers.get(replica.broker)
        if answer is None or not answer.directories:
            return None
        is_usable = answer.directories.get(directory)
        if is_usable is None:
            known = list_some(sorted(answer.directories))
            return f"{directory} is not a log directory of broker {replica.broker}, which has {known}"
        if not is_usable:
            return f"log directory {directory} of broker {replica.broker} has failed: repair or replace its disk"
        if not answer.are_all_seen and answer.directory_of.get(replica.topic_partition) not in (None, directory):
            # The broker refuses, because the failed directory may have an earlier copy.
            failed = list_some(path for path, works in sorted(answer.directories.items()) if not works)
            return f"broker {replica.broker} copies nothing between its log directories while {failed} has failed"
        return None


def group_by_broker(directories: Directories) -> dict[BrokerId, dict[TopicPartition, str]]:
    """Return the directories by broker."""
    found: defaultdict[BrokerId, dict[TopicPartition, str]] = defaultdict(dict)
    for (partition, broker), directory in directories.items():
        found[broker][partition] = directory
    return dict(found)


async def place_replicas(wanted: Mapping[TopicPartition, str], client: BrokerClient) -> dict[TopicPartition, Result]:
    """Ask a broker to put its replicas into these directories. Raises `AdminError`. See `ACCEPTED`."""
    response = await client.ask_any(make_replica_log_dirs_request(wanted), AlterReplicaLogDirsResponse)
    return {
        TopicPartition(TopicName(str(topic.topic_name)), PartitionId(int(each.partition_index))): Result(
            code=each.error_code
        )
        for topic in response.results
        for each in topic.partitions
    }
