"""A cluster of our brokers, each of which may also be the controller, as in seed 004: nothing else is needed."""

import pytest

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.python_broker import PythonBroker
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import open_client
from devcluster.waiting.under_load import nothing_lost
from devcluster.waiting.vocabulary import (
    serve_topic,
    wait_until_acknowledged,
    wait_until_controlled_by,
    wait_until_served,
)

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]


def test_the_broker_that_is_the_controller_is_killed_and_another_stops_in_order(
    servers_folder: RunFolder, zookeeper_connect: str
) -> None:
    def make_broker(broker: int) -> PythonBroker:
        return PythonBroker(servers_folder, zookeeper_connect, broker, name=f"both-{broker}", may_be_controller=True)

    with (
        make_broker(1) as first,
        make_broker(2) as second,
        make_broker(3) as third,
        open_client(zookeeper_connect) as client,
    ):
        brokers = {each.controller_id: each for each in (first, second, third)}
        bootstrap = ",".join(each.address for each in brokers.values())
        znodes = ClusterZnodes(client)
        serve_topic(znodes, "both", [[1, 2, 3], [2, 3, 1], [3, 1, 2]], {"min.insync.replicas": "2"})
        with nothing_lost(bootstrap, "both", more_than=200) as producer:
            killed = znodes.controller()
            assert killed in brokers
            brokers[killed].kill()
            wait_until_controlled_by(znodes, *(brokers.keys() - {killed}))
            wait_until_acknowledged(producer, 200)
            brokers[killed].start()
            wait_until_served(znodes, "both", [0, 1, 2])
            leaving = znodes.controller()
            assert leaving is not None
            brokers[leaving].stop()
            wait_until_controlled_by(znodes, *(brokers.keys() - {leaving}))
            assert "this broker leads no partitions now" in brokers[leaving].log()
            wait_until_acknowledged(producer, 200)
            brokers[leaving].start()
            wait_until_served(znodes, "both", [0, 1, 2])
