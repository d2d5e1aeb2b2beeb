"""The log directories of a broker: their disk usage and failures, from the broker (DescribeLogDirs).

Brokers report the size of a disk since Kafka 3.3 (KIP-827). An older broker, or one that forbids the operator's user to
Describe the cluster, reports nothing.
"""

from dataclasses import dataclass

from kio.schema.describe_log_dirs.v4 import DescribeLogDirsResponse
from kio.schema.describe_log_dirs.v4.response import DescribeLogDirsResult
from kio.schema.errors import ErrorCode

from controller_core.client.log_dirs.log_sizes import BrokerClient
from controller_core.wire.requests.log_dirs import DISK_SIZES


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectory:
    """A log directory with its disk."""

    path: str
    total_bytes: int
    used_percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectories:
    """The log directories of a broker."""

    fullest: LogDirectory | None = None
    """None if the broker does not report the size of its disks."""
    failed: tuple[str, ...] = ()
    """Paths of the directories that cannot be used."""


async def ask_log_directories(client: BrokerClient) -> LogDirectories | None:
    """Return a broker's log directories; None if it does not report them. Raises `AdminError`."""
    return read_log_directories(await client.ask_any(DISK_SIZES, DescribeLogDirsResponse))


def read_log_directories(response: DescribeLogDirsResponse) -> LogDirectories | None:
    """Return the log directories in an answer; None if it has none, which is the answer to a user without the right."""
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
