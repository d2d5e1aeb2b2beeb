"""A continuous load of messages during a test."""

from collections.abc import Iterator
from contextlib import contextmanager

from devcluster.clients.identity import NOBODY, Identity
from devcluster.clients.load import AckedProducer, find_lost, read_back
from devcluster.waiting.vocabulary import wait_until_acknowledged


@contextmanager
def nothing_lost(
    bootstrap_servers: str, topic: str, *, more_than: int = 0, identity: Identity = NOBODY
) -> Iterator[AckedProducer]:
    """Produce with acks=all before, during and after the block, and assert that all acknowledged messages can be read.

    More than `more_than` messages are acknowledged before the block, and again after it.
    """
    with AckedProducer(bootstrap_servers, topic, identity=identity) as producer:
        wait_until_acknowledged(producer, more_than)
        yield producer
        wait_until_acknowledged(producer, more_than)
    missing = find_lost(producer.stop().acknowledged, read_back(bootstrap_servers, topic, identity=identity))
    assert missing == [], f"acknowledged and lost: {missing}"
