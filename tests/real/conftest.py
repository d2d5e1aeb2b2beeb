"""Kafka clusters for the tests, each in a ZooKeeper tree of its own.

With several processes (`--dist loadgroup`), one process runs the tests of a file, or those of a file on one of the clusters
that a whole run shares. pytest runs all tests of one cluster before those of the next, so each process starts each once.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, Protocol

import pytest

from devcluster.building.java import KAFKA_VERSION
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper

_SHARED: Final = ("started_cluster", "served")
"""Fixtures whose parameters are clusters that a whole run shares."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests that one process runs."""
    for item in items:
        callspec = getattr(item, "callspec", None)
        shared = [str(callspec.params[name]) for name in _SHARED if name in callspec.params] if callspec else []
        item.add_marker(pytest.mark.xdist_group(" ".join([item.path.as_posix(), *shared])))


class StartKafka(Protocol):
    """Starts brokers 1..N and returns when all are registered; they end with the test."""

    def __call__(
        self,
        *,
        brokers: int = 3,
        properties: Mapping[str, object] | None = None,
        racks: Sequence[str] | None = None,
        version: str = KAFKA_VERSION,
    ) -> KafkaCluster: ...


@pytest.fixture
def start_kafka(servers_folder: RunFolder, zookeeper: ZooKeeper, zookeeper_chroot: str) -> Iterator[StartKafka]:
    """A function that starts this test's cluster below `zookeeper_chroot`."""
    with ExitStack() as started:

        def start(
            *,
            brokers: int = 3,
            properties: Mapping[str, object] | None = None,
            racks: Sequence[str] | None = None,
            version: str = KAFKA_VERSION,
        ) -> KafkaCluster:
            cluster = KafkaCluster(
                servers_folder,
                zookeeper,
                brokers=brokers,
                properties=properties,
                racks=racks,
                chroot=zookeeper_chroot,
                version=version,
            )
            return started.enter_context(cluster)

        yield start
