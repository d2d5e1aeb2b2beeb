"""The size limits of requests by API: bytes, total items, and entries with an answer of their own.

Bytes are known before anything is read into memory, and items before they are created, so exceeding a limit costs
nothing. Items are the elements of all arrays in a request: a reassignment of a partition to three brokers has four.
Entries are those of the top-level arrays, such as the topics of CreateTopics; the answer has a result for each.

Tools send far less. 10,000 partitions in one topic, reassignments of 100,000 partitions, and 20,000 topics to delete
are within the limits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLimits:
    """The limits of one request to an API."""

    max_bytes: int = 8 * _MB
    max_items: int = 100_000
    max_entries: int = 5_000


_SMALL: Final = RequestLimits(max_bytes=64 * 1024, max_items=1_000, max_entries=1_000)
"""For requests about a single thing."""

LIMITS: Final[Mapping[int, RequestLimits]] = {
    3: RequestLimits(max_items=20_000, max_entries=20_000),  # Metadata; larger requests are left to a broker
    7: _SMALL,  # ControlledShutdown
    16: _SMALL,  # ListGroups
    18: _SMALL,  # ApiVersions
    19: RequestLimits(),  # CreateTopics
    20: RequestLimits(max_items=50_000, max_entries=20_000),  # DeleteTopics
    32: RequestLimits(max_items=10_000),  # DescribeConfigs; larger requests are left to a broker
    33: RequestLimits(max_items=10_000),  # AlterConfigs; larger requests are left to a broker
    34: RequestLimits(max_bytes=_MB, max_items=20_000),  # AlterReplicaLogDirs
    35: RequestLimits(max_bytes=_MB),  # DescribeLogDirs
    37: RequestLimits(),  # CreatePartitions
    43: RequestLimits(max_items=150_000, max_entries=50_000),  # ElectLeaders
    44: RequestLimits(max_items=10_000),  # IncrementalAlterConfigs; larger requests are left to a broker
    45: RequestLimits(max_items=500_000, max_entries=50_000),  # AlterPartitionReassignments
    46: RequestLimits(max_items=150_000, max_entries=50_000),  # ListPartitionReassignments
    51: RequestLimits(max_items=20_000),  # AlterUserScramCredentials
    56: RequestLimits(max_items=2_000_000, max_entries=200_000),  # AlterPartition: a leader's, for all its partitions
    57: _SMALL,  # UpdateFeatures
    60: _SMALL,  # DescribeCluster
    61: RequestLimits(max_bytes=_MB, max_items=20_000),  # DescribeProducers
    66: _SMALL,  # ListTransactions
    67: _SMALL,  # AllocateProducerIds
}

LARGE_ANSWERS: Final = frozenset({1, 3, 32, 35, 46, 61})
"""APIs whose answers can be much larger than their requests: Fetch, Metadata, DescribeConfigs, DescribeLogDirs,
ListPartitionReassignments and DescribeProducers."""


def limits_of(api_key: int) -> RequestLimits:
    """Return the limits of an API that is answered here."""
    return LIMITS.get(api_key, _SMALL)
