"""A simulated controller of a cluster without brokers: every new topic gets leaders.

The operator only sees znodes, so these are all that it needs. A real controller on the same machine would take
processor time that is not the operator's, and many brokers even more.
"""

import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError

from controller_core.model.ids import BrokerEpoch, BrokerId, ControllerEpoch, TopicName, TopicPartition
from controller_core.model.metadata import Broker, Endpoint, LeaderAndIsr, TopicAssignment
from controller_core.zk import codecs, paths

BROKERS: Final = tuple(map(BrokerId, (1, 2, 3)))
CLUSTER_ID: Final = "a1b2c3d4e5f6g7h8i9j0kA"
_CONTROLLER: Final = BrokerId(1000)
_EPOCH: Final = ControllerEpoch(1)
_PARENTS: Final = (
    "/cluster",
    paths.BROKER_IDS,
    paths.TOPICS,
    paths.DELETE_TOPICS,
    paths.TOPIC_CONFIGS,
    "/config/brokers",
    "/config/changes",
)
_PAUSE_S: Final = 0.1
_AT_ONCE: Final = 200
"""The number of topics whose transactions are in flight together."""


def cluster_znodes() -> Iterator[tuple[str, bytes]]:
    """Yield the znodes of a cluster without topics, parents first: its brokers are registered for good."""
    yield from ((path, b"") for path in _PARENTS)
    yield paths.CLUSTER_ID, b'{"version":"1","id":"%s"}' % CLUSTER_ID.encode()
    yield paths.CONTROLLER_EPOCH, codecs.encode_controller_epoch(_EPOCH)
    yield paths.CONTROLLER, codecs.encode_controller(_CONTROLLER, 0)
    for broker in BROKERS:
        endpoint = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="127.0.0.1", port=9)
        yield (
            paths.broker(broker),
            codecs.encode_broker(Broker(id=broker, epoch=BrokerEpoch(0), endpoints=(endpoint,))),
        )


def znodes_of(topic: TopicName, assignment: TopicAssignment) -> Iterator[tuple[str, bytes]]:
    """Yield the znodes that a controller creates for a new topic, parents first; preferred replicas lead."""
    yield paths.partitions(topic), b""
    for number, partition in assignment.partitions.items():
        at = TopicPartition(topic, number)
        state = LeaderAndIsr(leader=partition.replicas[0], isr=partition.replicas)
        yield paths.partition(at), b""
        yield paths.partition_state(at), codecs.encode_partition_state(state, _EPOCH)


class PaperController:
    """The controller, in its own thread while the context is entered; it polls for new topics."""

    def __init__(self, connect: str) -> None:
        self._client = KazooClient(hosts=connect, timeout=60.0, connection_retry=-1)
        self._known: set[str] = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="paper controller", daemon=True)

    def __enter__(self) -> "PaperController":
        self._client.start(timeout=30)
        for path, data in cluster_znodes():
            self._client.create(path, data, makepath=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over.set()
        self._client.stop()
        self._client.close()
        self._thread.join()

    @property
    def topics(self) -> int:
        """The number of topics with leaders."""
        return len(self._known)

    def _run(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            try:
                names = sorted(set(self._client.get_children(paths.TOPICS)) - self._known)
                for first in range(0, len(names), _AT_ONCE):
                    self._lead([TopicName(name) for name in names[first : first + _AT_ONCE]])
            except KazooException:
                # ZooKeeper is stopped, or this is the end: unwritten topics are still new in the next round.
                continue

    def _lead(self, topics: list[TopicName]) -> None:
        reads = [(topic, self._client.get_async(paths.topic(topic))) for topic in topics]
        writes = []
        for topic, read in reads:
            try:
                assignment = codecs.decode_topic(topic, read.get()[0])
            except NoNodeError:
                continue
            transaction = self._client.transaction()
            for path, data in znodes_of(topic, assignment):
                transaction.create(path, data)
            writes.append((topic, transaction.commit_async()))
        for topic, write in writes:
            write.get()
            self._known.add(topic)
