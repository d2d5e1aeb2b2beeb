"""Kafka clusters for the tests, each in a ZooKeeper tree of its own.

Which tests run one after the other in one process, where several run them (`--dist loadgroup`): those of a file, and of
these those on one of the clusters that a whole run shares. pytest takes the clusters one after the other, so each process
starts each of them once.

With `--sample` a commit runs a sixteenth of the files, but all of the suite and of the clients (`tests/sampling.py`).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

import pytest

from devcluster.building.java import KAFKA_VERSION
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper
from tests.sampling import deal_by_file

_SHARED: Final = ("started_cluster", "served")
"""Fixtures whose parameters are clusters that a whole run shares."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts together what runs in one process, and makes a matrix of the files that are not of the suite."""
    here = Path(__file__).parent
    of_the_suite = (here / "conformance", here / "clients")
    for item in items:
        callspec = getattr(item, "callspec", None)
        shared = [str(callspec.params[name]) for name in _SHARED if name in callspec.params] if callspec else []
        item.add_marker(pytest.mark.xdist_group(" ".join([item.path.as_posix(), *shared])))
        if here in item.path.parents and not any(folder in item.path.parents for folder in of_the_suite):
            deal_by_file(item, "on real servers", parts=16)


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
