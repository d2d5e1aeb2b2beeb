"""The log directories of a broker: how full they are, and which have failed, as the broker says (DescribeLogDirs).

Brokers say how large a disk is since Kafka 3.3 (KIP-827). An older broker, or one that does not let the operator's user
Describe the cluster, is one of which nothing is known.
"""

from dataclasses import dataclass

from kio.schema.describe_log_dirs.v4 import DescribeLogDirsRequest, DescribeLogDirsResponse
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResult
from kio.schema.errors import ErrorCode

from controller_operator.kafka.log_sizes import BrokerClient

_NO_TOPICS = DescribeLogDirsRequest(topics=())
"""Asks for the directories, and nothing of what is in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectory:
    """The disk that a log directory is on."""

    path: str
    total_bytes: int
    used_percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectories:
    """The log directories of a broker."""

    fullest: LogDirectory | None = None
    """None if the broker does not say how large its disks are."""
    failed: tuple[str, ...] = ()
    """Paths of the directories that cannot be used."""


async def ask_log_directories(client: BrokerClient) -> LogDirectories | None:
    """Return what a broker says of its log directories; None if it says nothing. Raises `RequestError`."""
    return read_log_directories(await client.ask_any(_NO_TOPICS, DescribeLogDirsResponse))


def read_log_directories(response: DescribeLogDirsResponse) -> LogDirectories | None:
    """Return what an answer says; None if it is about no directory, as an answer to somebody without the right is."""
    if not response.results:
        return None
    known = [directory for each in response.results if (directory := _directory(each)) is not None]
    return LogDirectories(
        fullest=max(known, key=lambda each: each.used_percent, default=None),
        failed=tuple(sorted(each.log_dir for each in response.results if each.error_code is not ErrorCode.none)),
    )


def _directory(said: DescribeLogDirsResult) -> LogDirectory | None:
    total, usable = int(said.total_bytes), int(said.usable_bytes)
    if said.error_code is not ErrorCode.none or total <= 0 or not 0 <= usable <= total:
        return None
    return LogDirectory(path=said.log_dir, total_bytes=total, used_percent=100 * (total - usable) // total)
