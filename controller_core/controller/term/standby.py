"""The standby's knowledge of the cluster: topics and the states of all partitions, kept current.

Reading them is most of the cost of a takeover of a large cluster. So a standby reads them beforehand, and a persistent
recursive watch of `/brokers` notifies it of every change. Changed znodes are dropped at once and read again a moment
later. A takeover only has to read the changes of that last moment. This is as good as reading after the takeover:
ZooKeeper notifies a client of a change before it answers a later request, and the request that wins the role fences all
earlier controllers. The standby also prepares the requests to brokers (`prepared_topic`). It holds a `ClusterState`,
which the term takes over, so it needs the memory of a controller. With a ZooKeeper older than 3.6, which lacks such
watches, it stays cold.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.controller.sending.prepared_topic import PreparedTopic, TopicWriter
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.metadata import PartitionState, TopicAssignment
from controller_core.supervision import start_supervised
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ConnectionLost, SessionExpired, TreeWatchUnsupported, ZkNode, ZkSession

log = structlog.get_logger()

GATHER_MS: Final = 100
"""The time to gather changes before they are read, because one writer's changes come close together."""
READ_AT_ONCE: Final = 10_000
"""The number of znodes to read at once, before the event loop gets its turn."""
LOOK_AGAIN_MS: Final = 1000

_T = TypeVar("_T")


@dataclass(slots=True)
class Known:
    """The content read so far, as of the last notified change."""

    znodes: dict[TopicName, tuple[ZkNode, TopicAssignment]] = field(default_factory=dict)
    """The znodes of exactly the topics in the state."""
    state: ClusterState = field(default_factory=ClusterState)
    prepared: dict[TopicName, PreparedTopic] = field(default_factory=dict)
    """The prepared requests, for topics that are fully known."""

    def content(self, topic: TopicName, node: ZkNode) -> TopicAssignment | None:
        """Return the content of a topic's znode if exactly this version was read before."""
        read, content = self.znodes.get(topic, (None, None))
        return content if read == node else None

    def add(self, topic: TopicName, node: ZkNode, content: TopicAssignment) -> None:
        """Add a topic that is not known, or was dropped."""
        self.znodes[topic] = node, content
        self.state.add_topic(topic, content.topic_id, node.czxid, content.partitions)

    def drop(self, topic: TopicName) -> None:
        """Forget a topic with its states."""
        if self.znodes.pop(topic, None) is not None:
            self.state.remove_topic(topic)
        self.prepared.pop(topic, None)


class Standby:
    """Keeps the state of the cluster while this process is not the controller. `take` passes it to a new term.

    `on_heat` is called whenever the process becomes hot or cold.
    """

    def __init__(
        self, zk: ZkSession, clock: Clock, *, is_enabled: bool, on_heat: Callable[[], None] = lambda: None
    ) -> None:
        self._zk = zk
        self._clock = clock
        self._is_enabled = is_enabled
        self._on_heat = on_heat
        self._task: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._known = Known()
        self._changed_topics: set[TopicName] = set()
        self._changed_states: set[TopicPartition] = set()
        self._unprepared: set[TopicName] = set()
        self._brokers: frozenset[BrokerId] = frozenset()
        self._brokers_changed = True
        self._woken = asyncio.Event()
        self._is_lost = False
        self._is_read = False

    def begin(self) -> None:
        """Start to read, unless it has already started."""
        if self._is_enabled and (self._task is None or self._task.done()):
            self._task = start_supervised(
                partial(self._run, self._ending),
                name="standby",
                sleep_ms=self._clock.sleep_ms,
                monotonic_ms=self._clock.monotonic_ms,
            )

    @property
    def is_hot(self) -> bool:
        """True if everything was read and is kept current. A takeover would only have to read the last changes."""
        return self._is_read

    @property
    def known(self) -> Known:
        """The present content. Valid until the next `await`."""
        return self._known

    def take(self) -> Known:
        """Return the present content for the new term, and stop standing by."""
        known, self._known = self._known, Known()
        self._end()
        return known

    async def close(self) -> None:
        """Stop standing by, and forget everything."""
        self._end()
        if self._ending is not None:
            await asyncio.wait([self._ending])
        self._forget()

    def _end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task, self._ending = None, self._task
            self._set_is_hot(is_hot=False)

    async def _run(self, former: asyncio.Task[None] | None) -> None:
        if former is not None:
            await asyncio.wait([former])  # the former task removes its watch, which has the same path as ours
        while True:
            try:
                await self._keep_current()
            except TreeWatchUnsupported:
                log.warning("hot standby is impossible: ZooKeeper must be 3.6 or newer")
                return
            except (ConnectionLost, SessionExpired) as error:
                log.info("standing by cold until ZooKeeper answers again", reason=str(error))
            await self._clock.sleep_ms(LOOK_AGAIN_MS)

    async def _keep_current(self) -> None:
        """Read everything, and then every change. Return when the watch is lost."""
        self._forget()
        self._is_lost = False
        unwatch = await self._zk.watch_tree(paths.BROKERS, self._on_change)
        try:
            names = (await self._zk.children_many([paths.TOPICS]))[0] or ()
            self._changed_topics.update(map(TopicName, names))
            await self._read()
            await self._prepare()
            self._set_is_hot(is_hot=not self._is_lost)
            log.info("hot standby: the cluster's state is read", partitions=len(self._known.state.states))
            while not self._is_lost:
                await self._woken.wait()
                self._woken.clear()
                await self._clock.sleep_ms(GATHER_MS)
                await self._read()
                await self._prepare()
        finally:
            self._forget()  # at once, because there are no notifications from now on
            with suppress(ConnectionLost, SessionExpired):
                await unwatch()

    def _on_change(self, path: str | None) -> None:
        """Handle a notification: a znode below `/brokers` was created, written or deleted; None: any of them."""
        self._woken.set()
        if path is None:
            self._is_lost = True
            self._forget()
        elif path.endswith("/state"):
            with suppress(ValueError):
                partition = paths.parse_partition_state(path)
                self._changed_states.add(partition)
                self._known.state.forget_state(partition)
                self._unprepare(partition.topic)
        elif path.startswith(f"{paths.BROKER_IDS}/"):
            self._brokers_changed = True
        elif path.startswith(f"{paths.TOPICS}/") and path.count("/") == paths.TOPICS.count("/") + 1:
            topic = TopicName(path.rpartition("/")[2])
            self._changed_topics.add(topic)
            self._known.drop(topic)

    def _unprepare(self, topic: TopicName) -> None:
        self._unprepared.add(topic)
        self._known.prepared.pop(topic, None)

    async def _read(self) -> None:
        """Read the changes until none is left."""
        while (self._changed_topics or self._changed_states) and not self._is_lost:
            await self._read_topics(_some_of(self._changed_topics))
            await self._read_states(_some_of(self._changed_states))

    async def _prepare(self) -> None:
        """Write the requests for topics that have changed; for all topics if brokers have come or gone."""
        if self._brokers_changed:
            self._brokers_changed = False
            names = (await self._zk.children_many([paths.BROKER_IDS]))[0] or ()
            ids = map(paths.parse_broker_id, names)
            self._brokers = frozenset(broker_id for broker_id in ids if broker_id is not None)
            self._unprepared.update(self._known.znodes)
        writer = TopicWriter(self._known.state, self._brokers)
        while self._unprepared and not self._is_lost:
            topic = self._unprepared.pop()
            if topic in self._known.znodes and (prepared := writer.prepare(topic)) is not None:
                self._known.prepared[topic] = prepared
            await asyncio.sleep(0)

    async def _read_topics(self, topics: Sequence[TopicName]) -> None:
        nodes = await self._zk.read_many([paths.topic(topic) for topic in topics])
        for topic, node in zip(topics, nodes, strict=True):
            # Znodes that changed since the read are read again. Nothing is kept if the watch is lost.
            if node is None or topic in self._changed_topics or self._is_lost:
                continue
            with suppress(MalformedZnode):  # the next controller reports it
                content = codecs.decode_topic(topic, node.data)
                self._known.drop(topic)
                self._known.add(topic, node, content)
                self._unprepare(topic)
                self._changed_states.update(self._known.state.list_partitions_of(topic))

    async def _read_states(self, partitions: Sequence[TopicPartition]) -> None:
        nodes = await self._zk.read_many(paths.partition_states(partitions))
        read: dict[TopicPartition, PartitionState] = {}
        for partition, node in zip(partitions, nodes, strict=True):
            if node is None or partition in self._changed_states or self._is_lost:
                continue
            if self._known.state.has(partition):  # else its topic is gone, or is read again with all states
                with suppress(MalformedZnode):
                    read[partition] = codecs.decode_partition_state(partition, node)
        self._known.state.set_states(read)

    def _set_is_hot(self, *, is_hot: bool) -> None:
        if is_hot is not self._is_read:
            self._is_read = is_hot
            self._on_heat()

    def _forget(self) -> None:
        self._known = Known()
        self._set_is_hot(is_hot=False)
        self._changed_topics.clear()
        self._changed_states.clear()
        self._unprepared.clear()
        self._brokers_changed = True


def _some_of(changed: set[_T]) -> list[_T]:
    """Take out as many of the changed ones as are read at once."""
    return [changed.pop() for _ in range(min(len(changed), READ_AT_ONCE))]
