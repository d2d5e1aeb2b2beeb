"""Releases of Kafka without ZooKeeper that clusters are of. Of tests with others than the usual one a commit has one."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from devcluster.building.java import KRAFT_VERSION, OTHER_KRAFT_VERSIONS
from tests.real.versions.releases import usual_and


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


def _usual_and(others: Iterable[str]) -> tuple[Any, ...]:
    return usual_and(others, usual=KRAFT_VERSION, matrix="other releases without ZooKeeper")


RELEASES: Final = _usual_and(OTHER_KRAFT_VERSIONS)
WITH_4_1: Final = _usual_and([NEWEST])
"""Those whose features can be raised from those of 4.0 to those of 4.1."""
WITH_CORDONS: Final = _usual_and([NEWEST])[1:]
"""Those whose controllers refuse brokers of which all log directories are cordoned."""
