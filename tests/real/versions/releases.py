"""The mark of tests whose brokers are of one release each, with ZooKeeper: the usual one, and each older one."""

from typing import Final

import pytest

from devcluster.building.java import KAFKA_VERSION, OLDER_VERSIONS

of_each_release: Final = pytest.mark.parametrize("release", [KAFKA_VERSION, *OLDER_VERSIONS])
