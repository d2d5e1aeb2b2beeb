"""Messages that come all the time, whatever happens to a cluster meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager

from devcluster.clients.load import AckedProducer, lost, read_back
from devcluster.running.processes import wait_until


@contextmanager
def nothing_lost(bootstrap_servers: str, topic: str) -> Iterator[None]:
    """Before, while and after the block messages are acknowledged, with acks=all; all of these are there in the end."""
    with AckedProducer(bootstrap_servers, topic) as producer:
        wait_until(lambda: producer.acknowledged_count > 0, "a message is acknowledged")
        yield
        before = producer.acknowledged_count
        wait_until(lambda: producer.acknowledged_count > before, "messages are still acknowledged")
        report = producer.stop()
    assert lost(report.acknowledged, read_back(bootstrap_servers, topic)) == []
