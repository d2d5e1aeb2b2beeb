"""Our broker during an outage of ZooKeeper, and afterwards."""

import pytest

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from devcluster.running.processes import wait_until
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import serve_topic, wait_until_acknowledged, wait_until_served

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


def test_it_serves_on_and_hears_afterwards_what_changed(servers_folder: RunFolder) -> None:
    with (
        ZooKeeper(servers_folder, name="zookeeper-outage-ours") as zookeeper,
        ControllerProcess(servers_folder, zookeeper.connect, name="outage-controller"),
        PythonBroker(servers_folder, zookeeper.connect, 1, name="outage-1") as first,
        PythonBroker(servers_folder, zookeeper.connect, 2, name="outage-2") as second,
    ):
        bootstrap = f"{first.address},{second.address}"
        with open_client(zookeeper.connect) as client:
            znodes = ClusterZnodes(client)
            serve_topic(znodes, "away", [[1, 2], [2, 1]])
        with nothing_lost(bootstrap, "away", more_than=100) as producer:
            zookeeper.kill()
            wait_until_acknowledged(producer, 200)
            zookeeper.start()
            with open_client(zookeeper.connect) as client:
                znodes = ClusterZnodes(client)
                wait_until(lambda: len(client.get_children("/brokers/ids")) == 2, "both are registered")
                wait_until_served(znodes, "away", [0, 1])
                znodes.change_config("away", {"max.message.bytes": "10000"})
                wait_until(lambda: "MSG_SIZE_TOO_LARGE" in _refusal(bootstrap), "the change is heard")


def _refusal(bootstrap: str) -> str:
    """Return the error of a producer without retries; empty if its message is accepted."""
    from confluent_kafka import Producer

    heard: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "retries": 0, "log_level": 0})
    producer.produce("away", b"x" * 50_000, partition=0, on_delivery=lambda error, _: heard.append(str(error)))
    producer.flush(20)
    return "".join(heard)
