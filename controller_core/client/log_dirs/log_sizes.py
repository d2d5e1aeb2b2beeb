"""The replicas on brokers' disks (DescribeLogDirs): their sizes and directories. Nothing else shows copying.

Only certain sizes count. A replica that a broker does not list has no log yet, unless one of the broker's directories
has failed, which may contain it. A log that moves from one directory to another (`is_future_key`) is not the replica.
An answer that contradicts itself, or is out of range, counts as no answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from kio.schema.describe_log_dirs.v2 import DescribeLogDirsResponse
from kio.schema.describe_log_dirs.v2.response import DescribeLogDirsPartition, DescribeLogDirsResult
from kio.schema.describe_log_dirs.v5 import DescribeLogDirsResponse as DescribeLogDirsResponse5
from kio.schema.describe_log_dirs.v5.response import DescribeLogDirsPartition as DescribeLogDirsPartition5
from kio.schema.describe_log_dirs.v5.response import DescribeLogDirsResult as DescribeLogDirsResult5
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import AdminError
from controller_core.client.transport.request_client import Address
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.wire.connections.security import SecuritySource
from controller_core.wire.requests.log_dirs import make_log_sizes_request

MAX_ASKED: Final = 500
"""Partitions of one request."""
Response = TypeVar("Response", bound=ResponsePayload)


class BrokerClient(Protocol):
    """The seam for asking one broker, at any of its listeners."""

    async def ask_any(self, request: RequestPayload, response_type: type[Response]) -> Response:
        """Return the first answer of a listener. Raises `AdminError`."""
        ...


class OpenBroker(Protocol):
    """Makes a client of the broker with these listeners."""

    def __call__(self, bootstrap: Sequence[Address], *, security: SecuritySource | None = None) -> BrokerClient: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """The copying of a partition from its leader to the brokers that are not in sync yet; empty if all are."""

    leader: BrokerId
    to: tuple[BrokerId, ...]
    has_begun: bool = True
    """False while the partition waits for its turn to move."""


Copies = Mapping[TopicPartition, Copy]


@dataclass(frozen=True, slots=True, kw_only=True)
class FutureLog:
    """A log that a broker copies to another of its directories, where it will replace the replica's log."""

    directory: str
    bytes: int
    offset_lag: int
    """Offsets that it lacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSizes:
    """The answer of a broker about the replicas that it was asked about."""

    bytes_of: Mapping[TopicPartition, int]
    are_all_seen: bool
    """True if all of its directories could be read: a replica that is not named then has no log there."""
    directory_of: Mapping[TopicPartition, str] = field(default_factory=dict)
    futures: Mapping[TopicPartition, FutureLog] = field(default_factory=dict)
    directories: Mapping[str, bool] = field(default_factory=dict)
    """All of its log directories, with False for failed ones."""


class UnusableSizesError(AdminError):
    """The answer of a broker about its logs is contradictory or empty."""


async def ask_log_sizes(partitions: Sequence[TopicPartition], client: BrokerClient) -> LogSizes:
    """Return the sizes of a broker's replicas, by 500 a request. Raises `AdminError`."""
    whole = LogSizes(bytes_of={}, are_all_seen=True)
    for first in range(0, len(partitions), MAX_ASKED):
        request = make_log_sizes_request(partitions[first : first + MAX_ASKED])
        found = read_log_sizes(await client.ask_any(request, DescribeLogDirsResponse))
        whole = LogSizes(
            bytes_of={**whole.bytes_of, **found.bytes_of},
            are_all_seen=whole.are_all_seen and found.are_all_seen,
            directory_of={**whole.directory_of, **found.directory_of},
            futures={**whole.futures, **found.futures},
            directories={
                **whole.directories,
                **{path: works and whole.directories.get(path, True) for path, works in found.directories.items()},
            },
        )
    return whole


def read_log_sizes(response: DescribeLogDirsResponse | DescribeLogDirsResponse5) -> LogSizes:
    """Return the sizes in an answer, over all directories. Raises `UnusableSizesError`."""
    if not response.results:  # this version's answer to a user without the right
        raise UnusableSizesError("it names no log directory: check that the user may Describe the cluster")
    bytes_of: dict[TopicPartition, int] = {}
    directory_of: dict[TopicPartition, str] = {}
    futures: dict[TopicPartition, FutureLog] = {}
    for directory in response.results:
        path = str(directory.log_dir)
        for partition, log in _logs_in(directory):
            size = int(log.partition_size)
            if size < 0:
                raise UnusableSizesError(f"it has {size} bytes of {partition}")
            if log.is_future_key:
                lag = max(0, int(log.offset_lag))
                futures[partition] = FutureLog(directory=path, bytes=size, offset_lag=lag)
                continue
            if partition in bytes_of:
                raise UnusableSizesError(f"it has {partition} in two directories")
            bytes_of[partition], directory_of[partition] = size, path
    directories = {str(each.log_dir): each.error_code is ErrorCode.none for each in response.results}
    return LogSizes(
        bytes_of=bytes_of,
        are_all_seen=all(directories.values()),
        directory_of=directory_of,
        futures=futures,
        directories=directories,
    )


def _logs_in(
    directory: DescribeLogDirsResult | DescribeLogDirsResult5,
) -> Iterator[tuple[TopicPartition, DescribeLogDirsPartition | DescribeLogDirsPartition5]]:
    for topic in directory.topics:
        for each in topic.partitions:
            yield TopicPartition(TopicName(str(topic.name)), PartitionId(int(each.partition_index))), each
