"""The mark of tests that run on brokers of each release with ZooKeeper: the usual one, and each older one."""

from typing import Final

import pytest

from devcluster.building.java import KAFKA_VERSION, OLDER_VERSIONS

of_each_release: Final = pytest.mark.parametrize("release", [KAFKA_VERSION, *OLDER_VERSIONS])
