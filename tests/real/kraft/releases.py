"""Releases of Kafka without ZooKeeper that clusters are of."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from devcluster.building.java import KRAFT_VERSION, OTHER_KRAFT_VERSIONS


class Raise(NamedTuple):
    """Which features a cluster has at first, and to which level its metadata.version goes from there."""

    release: str
    to_level: int


OLDEST, NEWEST = OTHER_KRAFT_VERSIONS
RAISED: Final[Mapping[str, Raise]] = {
    OLDEST: Raise("3.9", 22),
    KRAFT_VERSION: Raise("4.0", 26),
    NEWEST: Raise("4.3", 31),
}


RELEASES: Final = (KRAFT_VERSION, *OTHER_KRAFT_VERSIONS)
WITH_4_1: Final = (KRAFT_VERSION, NEWEST)
"""Those whose features can be raised from those of 4.0 to those of 4.1."""
WITH_CORDONS: Final = (NEWEST,)
"""Those whose controllers refuse brokers of which all log directories are cordoned."""
