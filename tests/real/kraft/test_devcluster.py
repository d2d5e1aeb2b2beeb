"""The development cluster without ZooKeeper: it keeps its data over kills of brokers and controllers."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devcluster.clusters.kraft import KRaftCluster
from devcluster.clusters.run_folder import RunFolder
from devcluster.filling.parts import Part
from devcluster.running.processes import wait_until

pytestmark = pytest.mark.real(Part.KRAFT)


@pytest.fixture(scope="module")
def kraft(servers_folder: RunFolder) -> Iterator[KRaftCluster]:
    """Three brokers and three controllers."""
    with KRaftCluster(servers_folder) as cluster:
        yield cluster


def _admin(kraft: KRaftCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": kraft.bootstrap_servers})


def _is_live(admin: AdminClient, broker: int) -> bool | None:
    """Return True if the brokers list this one; None if the broker that was asked does not answer."""
    try:
        return broker in admin.list_topics(timeout=10).brokers
    except KafkaException:
        return None


def test_topics_are_created_and_written_while_a_controller_is_dead_and_another_broker_is(kraft: KRaftCluster) -> None:
    kraft.controller(101).kill()
    kraft.broker(3).kill()
    admin = _admin(kraft)
    # Brokers forward a client's requests to the controller, and name any live broker as it. librdkafka goes on to
    # try the one that was named first, so no request may begin before broker 3 is taken for dead.
    wait_until(lambda: _is_live(admin, 3) is False, "broker 3 is taken for dead")
    admin = _admin(kraft)
    created = admin.create_topics([NewTopic("kept", 2, replica_assignment=[[1, 2], [2, 1]])], operation_timeout=30)
    created["kept"].result(60)
    producer = Producer({"bootstrap.servers": kraft.bootstrap_servers, "acks": "all"})
    producer.produce("kept", b"value", partition=0)
    assert producer.flush(60) == 0
    kraft.controller(101).start()
    kraft.broker(3).start()
    for broker in (1, 2, 3):
        wait_until(lambda broker=broker: _is_live(admin, broker) is True, f"broker {broker} is live")  # type: ignore[misc]  # a lambda with a default
    assert "kept" in admin.list_topics(timeout=60).topics


def test_what_is_paused_keeps_its_connections_and_goes_on(kraft: KRaftCluster) -> None:
    admin = _admin(kraft)
    kraft.broker(2).pause()
    try:
        wait_until(lambda: _is_live(admin, 2) is False, "broker 2 is taken for dead")
    finally:
        kraft.broker(2).resume()
    wait_until(lambda: _is_live(admin, 2) is True, "broker 2 is live again")
