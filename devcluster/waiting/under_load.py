"""Messages that come all the time, whatever happens to a cluster meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager

from devcluster.clients.identity import NOBODY, Identity
from devcluster.clients.load import AckedProducer, lost, read_back
from devcluster.waiting.vocabulary import wait_until_acknowledged


@contextmanager
def nothing_lost(
    bootstrap_servers: str, topic: str, *, more_than: int = 0, identity: Identity = NOBODY
) -> Iterator[AckedProducer]:
    """Before, while and after the block messages are acknowledged, with acks=all; all of these are there in the end.

    More than so many are acknowledged before the block, and after it.
    """
    with AckedProducer(bootstrap_servers, topic, identity=identity) as producer:
        wait_until_acknowledged(producer, more_than)
        yield producer
        wait_until_acknowledged(producer, more_than)
    missing = lost(producer.stop().acknowledged, read_back(bootstrap_servers, topic, identity=identity))
    assert missing == [], f"acknowledged and lost: {missing}"
