"""Kafka clusters for the tests, each in a ZooKeeper tree of its own.

With several processes, `tests/grouping.py` decides which tests one process runs. pytest runs all tests of one cluster
before those of the next, so each process starts each once.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

import pytest

from devcluster.building.java import KAFKA_VERSION
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from tests.grouping import group_items


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    group_items(config, items)


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
