"""Kafka clusters for the tests, each in a ZooKeeper tree of its own."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Protocol

import pytest

from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper


class StartKafka(Protocol):
    """Starts brokers 1..N and returns when all are registered; they end with the test."""

    def __call__(
        self,
        *,
        brokers: int = 3,
        properties: Mapping[str, object] | None = None,
        racks: Sequence[str] | None = None,
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
        ) -> KafkaCluster:
            cluster = KafkaCluster(
                servers_folder,
                zookeeper,
                brokers=brokers,
                properties=properties,
                racks=racks,
                chroot=zookeeper_chroot,
            )
            return started.enter_context(cluster)

        yield start
