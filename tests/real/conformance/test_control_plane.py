"""Brokers with a listener for each purpose: among themselves, for clients, and for the controller's requests.

With `control.plane.listener.name`, brokers look their controller up under that name, except for a controlled shutdown,
which uses the listener among brokers; clients know neither. Our controller has one address for all three, while the
other clusters of this suite have an address for each name.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from devcluster.clients.znodes import ClusterZnodes
from devcluster.clusters.kafka import KafkaCluster
from devcluster.clusters.kontroller import ControllerProcess
from devcluster.clusters.listeners import EACH_APART
from devcluster.clusters.run_folder import RunFolder
from devcluster.clusters.zookeeper import ZooKeeper, open_client
from tests.real.conformance import at_clients_listener
from tests.real.conformance.clusters import ConformanceCluster

_PROPERTIES = {
    "controlled.shutdown.retry.backoff.ms": 100,
    "replica.lag.time.max.ms": 5_000,
}


@pytest.fixture(scope="module", params=["kafka", "kontroller"])
def controlled(
    request: pytest.FixtureRequest, servers_folder: RunFolder, zookeeper: ZooKeeper
) -> Iterator[ConformanceCluster]:
    """Two brokers, and one of the two controllers."""
    chroot = f"/control-plane-{request.param}"
    with (
        KafkaCluster(
            servers_folder, zookeeper, brokers=2, properties=_PROPERTIES, chroot=chroot, listeners=EACH_APART
        ) as kafka,
        open_client(kafka.zookeeper_connect) as client,
        ExitStack() as started,
    ):
        own: ControllerProcess | None = None
        if request.param == "kontroller":
            own = ControllerProcess(
                servers_folder,
                kafka.zookeeper_connect,
                name="control-plane-controller",
                listeners=EACH_APART,
                one_port=True,
            )
            started.enter_context(own)
        yield ConformanceCluster(kafka=kafka, znodes=ClusterZnodes(client), own_controller=own)


def test_clients_are_sent_where_everybody_is_on_their_listener(controlled: ConformanceCluster) -> None:
    controlled.health_gate.open()


def test_topics_are_created_moved_and_deleted_at_the_clients_listener(
    controlled: ConformanceCluster, tmp_path: Path
) -> None:
    at_clients_listener.a_topic_lives(controlled, tmp_path)


def test_an_idempotent_producer_gets_its_id(controlled: ConformanceCluster) -> None:
    at_clients_listener.an_idempotent_producer_is_served(controlled)


def test_an_isr_shrinks_when_a_follower_hangs_and_grows_when_it_is_back(controlled: ConformanceCluster) -> None:
    """Both are requested by AlterPartition, which goes to the control plane."""
    controller = controlled.znodes.controller()
    leader, follower = sorted(controlled.kafka.brokers, key=lambda broker: broker != controller)
    controlled.serve_topic("hanging", [[leader, follower]])
    with controlled.pause_broker(follower):
        # A follower that has everything stays in the ISR forever, however long it hangs.
        at_clients_listener.write(controlled, "hanging", broker=leader)
        # The paused broker may have been the controller. A broker's first request still goes to that one, and to
        # another one after half a minute.
        controlled.wait(
            lambda: controlled.znodes.isr("hanging", 0) == [leader], "the follower left the ISR", silence_s=60
        )
    controlled.wait_until_served("hanging")


def test_a_broker_that_stops_hands_its_leaderships_over(controlled: ConformanceCluster) -> None:
    """ControlledShutdown still goes to the listener among brokers."""
    controller = controlled.znodes.controller()
    stopping = next(broker for broker in controlled.kafka.brokers if broker != controller)
    (other,) = (broker for broker in controlled.kafka.brokers if broker != stopping)
    controlled.serve_topic("handed-over", [[stopping, other]])
    controlled.kafka.broker(stopping).stop()
    assert controlled.znodes.leader("handed-over", 0) == other
    assert "Controlled shutdown request returned successfully" in controlled.broker_log(stopping)
    controlled.kafka.broker(stopping).start()
    controlled.wait_until_served("handed-over")


def test_brokers_have_the_listeners_that_this_is_about(controlled: ConformanceCluster) -> None:
    registered = json.loads(controlled.znodes.client.get("/brokers/ids/1")[0])
    names = {endpoint.split("://")[0] for endpoint in registered["endpoints"]}
    assert names == {"INTERNAL", "CLIENT", "CONTROLLER"}
