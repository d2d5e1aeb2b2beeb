"""A leader of ours that writes the ISR into ZooKeeper itself, as seed 004 has it, beside a stock follower."""

import pytest

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import connected_client
from devcluster.running.processes import wait_until
from tests.real.conftest import StartKafka

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]


def test_a_stock_follower_leaves_the_isr_and_joins_it_by_the_leaders_own_writes(
    servers_folder: RunFolder, start_kafka: StartKafka
) -> None:
    kafka = start_kafka(brokers=2)
    settings = {"isr_writes": "zookeeper", "max_time_lag_ms": 2_000}
    with (
        PythonBroker(servers_folder, kafka.zookeeper_connect, 3, name="writing", settings=settings) as ours,
        connected_client(kafka.zookeeper_connect) as client,
    ):
        znodes = ClusterZnodes(client)
        znodes.create_topic("written", [[3, 1, 2]])
        wait_until(lambda: znodes.is_served("written", [0]), "all are in sync")
        # A session lasts longer than a follower may lag: it is the leader that takes it out.
        kafka.broker(2).pause()
        wait_until(lambda: znodes.isr("written", 0) == [1, 3], "broker 2 is out")
        assert client.exists("/brokers/ids/2") is not None
        kafka.broker(2).resume()
        wait_until(lambda: znodes.is_served("written", [0]), "all are in sync again", deadline_s=60)
        assert "Traceback" not in ours.log()
