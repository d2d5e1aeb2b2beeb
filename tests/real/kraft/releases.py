"""The releases of Kafka without ZooKeeper in the tests."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from devcluster.building.java import KRAFT_VERSION, OTHER_KRAFT_VERSIONS


class Raise(NamedTuple):
    """The release of a cluster's initial features, and the level to which its metadata.version is upgraded."""

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
"""The releases whose features can be upgraded from those of 4.0 to those of 4.1."""
WITH_CORDONS: Final = (NEWEST,)
"""The releases whose controllers refuse brokers with only cordoned log directories."""
