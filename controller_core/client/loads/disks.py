"""The disks of one broker and all logs on them, from one answer to DescribeLogDirs."""

from dataclasses import dataclass

from kio.schema.describe_log_dirs.v5 import DescribeLogDirsResponse
from kio.schema.errors import ErrorCode

from controller_core.client.log_dirs.log_sizes import LogSizes, read_log_sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Disks:
    """The logs of a broker, and the room for them."""

    logs: LogSizes
    disk_bytes: int | None
    """Free bytes and those of all logs. None if a directory has failed, or before Kafka 3.3 (KIP-827)."""
    is_cordoned: bool
    """True if all usable directories are cordoned (KIP-1066)."""

    @property
    def failed(self) -> tuple[str, ...]:
        """Paths of the directories that cannot be used."""
        return tuple(sorted(path for path, works in self.logs.directories.items() if not works))


def read_disks(response: DescribeLogDirsResponse) -> Disks:
    """Return the disks in an answer. Raises `UnusableSizesError`.

    Directories on one disk each report its free bytes, so they count as several disks."""
    logs = read_log_sizes(response)
    usable = [each for each in response.results if each.error_code is ErrorCode.none]
    is_told = len(usable) == len(response.results) and all(each.usable_bytes >= 0 for each in usable)
    free = sum(int(each.usable_bytes) for each in usable)
    used = sum(logs.bytes_of.values()) + sum(each.bytes for each in logs.futures.values())
    return Disks(
        logs=logs,
        disk_bytes=free + used if is_told else None,
        is_cordoned=bool(usable) and all(each.is_cordoned for each in usable),
    )
