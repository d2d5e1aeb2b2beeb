"""Refused starts and exits of our broker: the exit codes and the messages."""

import json

import pytest

from devcluster.clients.znodes import PARTITIONS_REMOVE
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import open_client
from devcluster.waiting.vocabulary import wait_until_ended, wait_until_gone, wait_until_logged
from tests.real.conftest import StartKafka
from tests.real.replica_broker.mixed import MixedCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

FAILED, USAGE = 1, 2


def finalize(connect: str, levels: dict[str, int]) -> None:
    content = {
        "version": 2,
        "status": 1,
        "features": {name: {"max_version_level": level} for name, level in levels.items()},
    }
    with open_client(connect) as client:
        client.ensure_path("/feature")
        client.set("/feature", json.dumps(content).encode())


def is_registered(connect: str, broker: int) -> bool:
    with open_client(connect) as client:
        return client.exists(f"/brokers/ids/{broker}") is not None


def test_an_incompatible_broker_never_registers(servers_folder: RunFolder, zookeeper_connect: str) -> None:
    finalize(zookeeper_connect, {"f": 3})
    broker = PythonBroker(servers_folder, zookeeper_connect, 3, name="incompatible", settings={"feature": ["f:1-2"]})
    try:
        broker.spawn()
        assert wait_until_ended(broker.process) == FAILED
        assert "f is finalized at 3, the broker supports 1 to 2" in broker.log()
        assert '"event":"registered"' not in broker.log()
        assert not is_registered(zookeeper_connect, 3)
    finally:
        broker.close()


def test_a_running_broker_leaves_when_the_cluster_moves_beyond_it(
    servers_folder: RunFolder, zookeeper_connect: str
) -> None:
    finalize(zookeeper_connect, {"f": 2})
    settings = {"feature": ["f:1-2"], "controlled_shutdown_retry_backoff_ms": 100}
    with PythonBroker(servers_folder, zookeeper_connect, 3, name="left-behind", settings=settings) as broker:
        finalize(zookeeper_connect, {"f": 3})
        assert wait_until_ended(broker.process) == FAILED
        assert "f is finalized at 3, the broker supports 1 to 2" in broker.log()
        assert not is_registered(zookeeper_connect, 3)


def test_an_id_that_another_broker_has_is_refused(servers_folder: RunFolder, zookeeper_connect: str) -> None:
    with PythonBroker(servers_folder, zookeeper_connect, 3, name="first-of-id"):
        second = PythonBroker(servers_folder, zookeeper_connect, 3, name="second-of-id")
        try:
            second.spawn()
            assert wait_until_ended(second.process) == USAGE
            assert "another broker is registered as 3" in second.log()
            assert is_registered(zookeeper_connect, 3)
        finally:
            second.close()  # this ends any session with its id


def test_a_log_directory_of_another_broker_is_refused(servers_folder: RunFolder, zookeeper_connect: str) -> None:
    with PythonBroker(servers_folder, zookeeper_connect, 3, name="owner"):
        pass
    owner_folder = servers_folder.data("owner") / "log"
    settings = {"log_directory": [str(owner_folder)]}
    other = PythonBroker(servers_folder, zookeeper_connect, 4, name="intruder", settings=settings)
    try:
        other.spawn()
        assert wait_until_ended(other.process) == FAILED
        assert str(owner_folder) in other.log()
        assert "broker.id" in other.log()
    finally:
        other.close()


def test_two_processes_on_one_log_directory_are_one_too_many(servers_folder: RunFolder, zookeeper_connect: str) -> None:
    with PythonBroker(servers_folder, zookeeper_connect, 3, name="holder") as holder:
        settings = {"log_directory": [str(holder.log_folder)]}
        second = PythonBroker(servers_folder, zookeeper_connect, 3, name="second-of-directory", settings=settings)
        try:
            second.spawn()
            assert wait_until_ended(second.process) == FAILED
            assert f"another process has the lock {holder.log_folder}/.lock" in second.log()
        finally:
            second.close()
        assert holder.process.is_running


def test_cutting_to_the_high_watermark_is_refused_beside_stock_brokers(
    servers_folder: RunFolder, start_kafka: StartKafka
) -> None:
    kafka: KafkaCluster = start_kafka(brokers=1)
    settings = {"truncate_to": "high-watermark"}
    broker = PythonBroker(servers_folder, kafka.zookeeper_connect, 3, name="cutting", settings=settings)
    try:
        broker.spawn()
        assert wait_until_ended(broker.process) == USAGE
        assert "--truncate-to high-watermark may lose" in broker.log()
    finally:
        broker.close()


@pytest.mark.parametrize("started", ["kontroller"], indirect=True, scope="package")
def test_no_partition_is_removed_where_stock_brokers_are_members(cluster: MixedCluster) -> None:
    cluster.serve_topic("not-removed", [[3], [3]])
    path = cluster.znodes.ask_of_partition(PARTITIONS_REMOVE, "not-removed", 1)
    wait_until_gone(cluster.znodes, path)
    assert cluster.znodes.is_served("not-removed", [0, 1])
    assert cluster.own_controller is not None
    wait_until_logged(
        cluster.own_controller.process, "stock brokers cannot remove a single partition, and 1, 2 are stock brokers"
    )
