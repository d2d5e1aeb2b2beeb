"""Compares a journal with ZooKeeper, read without the production code."""

from controller_core.journal.fold import Folded
from devcluster.clients.znodes import ClusterZnodes


def assert_comes_to(folded: Folded, znodes: ClusterZnodes, topics: list[str]) -> None:
    """Assert that the journal agrees with ZooKeeper about brokers, topics and partitions."""
    image = folded.image
    assert image is not None
    client = znodes.client
    registered = {
        int(name): client.get(f"/brokers/ids/{name}")[1].czxid for name in client.get_children("/brokers/ids")
    }
    assert {broker: fields["broker_epoch"] for broker, fields in image.brokers.items()} == registered
    assert set(image.topics) == set(client.get_children("/brokers/topics")) == set(topics)
    for topic, partition in image.assignments:
        assert image.assignments[topic, partition]["replicas"] == znodes.read_assignment(topic, partition)
        path = f"/brokers/topics/{topic}/partitions/{partition}/state"
        assert image.leaderships[topic, partition]["partition_epoch"] == client.get(path)[1].version
