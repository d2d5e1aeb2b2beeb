"""How large a request of each API may be: its bytes, its items in all, and the entries that it has an answer for each.

The bytes are known before any of them is read into memory, the items before any of them is made, so what is above a limit
costs nothing. Items are what all arrays of a request hold together: a reassignment of a partition to three brokers has
four. Entries are those of the arrays at the top, as the topics of CreateTopics; the answer says something about each.

Tools send far less. 10,000 partitions in one topic, reassignments of 100,000 partitions, 20,000 topics to delete
are within the limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """What one request of an API may have."""

    max_bytes: int = 8 * _MB
    max_items: int = 100_000
    max_entries: int = 5_000


_SMALL: Final = RequestLimits(max_bytes=64 * 1024, max_items=1_000, max_entries=1_000)
"""For requests about one thing."""

LIMITS: Final[Mapping[int, RequestLimits]] = {
    3: RequestLimits(max_items=20_000, max_entries=20_000),  # Metadata; more is a broker's business
    7: _SMALL,  # ControlledShutdown
    16: _SMALL,  # ListGroups
    18: _SMALL,  # ApiVersions
    19: RequestLimits(),  # CreateTopics
    20: RequestLimits(max_items=50_000, max_entries=20_000),  # DeleteTopics
    32: RequestLimits(max_items=10_000),  # DescribeConfigs; more is a broker's business
    34: RequestLimits(max_bytes=_MB, max_items=20_000),  # AlterReplicaLogDirs
    35: RequestLimits(max_bytes=_MB),  # DescribeLogDirs
    37: RequestLimits(),  # CreatePartitions
    43: RequestLimits(max_items=150_000, max_entries=50_000),  # ElectLeaders
    44: RequestLimits(max_items=10_000),  # IncrementalAlterConfigs; more is a broker's business
    45: RequestLimits(max_items=500_000, max_entries=50_000),  # AlterPartitionReassignments
    46: RequestLimits(max_items=150_000, max_entries=50_000),  # ListPartitionReassignments
    51: RequestLimits(max_items=20_000),  # AlterUserScramCredentials
    56: RequestLimits(max_items=2_000_000, max_entries=200_000),  # AlterPartition: a leader's, of all that it leads
    57: _SMALL,  # UpdateFeatures
    60: _SMALL,  # DescribeCluster
    61: RequestLimits(max_bytes=_MB, max_items=20_000),  # DescribeProducers
    66: _SMALL,  # ListTransactions
    67: _SMALL,  # AllocateProducerIds
}


def limits_of(api_key: int) -> RequestLimits:
    """The limits of an API that is answered here."""
    return LIMITS.get(api_key, _SMALL)
