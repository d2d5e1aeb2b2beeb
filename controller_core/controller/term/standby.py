"""What a process that stands by knows already of the cluster: the topics and the states of all partitions, kept current.

Reading them is most of what a takeover of a large cluster costs. So whoever waits for the role reads them beforehand, and
ZooKeeper notifies it of every change below `/brokers` (a persistent recursive watch). What has changed is dropped at once
and read again a moment later. When the role is won, nothing but what changed in that last moment is left to read.

It is as good as reading, because ZooKeeper notifies a client of every change before it answers a request that came after
the change. `/controller` is won by such a request, with a new epoch that keeps every former controller from writing:
whatever one of them wrote until then has been notified.

What brokers will be sent of each topic is written beforehand, too (`prepared_topic`).

What is kept is what the term will hold anyway, and handed to it as it is: a `ClusterState`, of topics and states alone. So
standing by takes the memory of a controller, and as much work as reading what the controller writes. A server that has no
such watches (before 3.6) leaves a process cold. Whatever else goes wrong costs what was read, and no more: it is read
again (`supervision`).
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
from controller_core.supervision import supervised
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import ConnectionLost, SessionExpired, TreeWatchUnsupported, ZkNode, ZkSession

log = structlog.get_logger()

GATHER_MS: Final = 100
"""How long changes are gathered before they are read: whoever writes many, writes them close together."""
READ_AT_ONCE: Final = 10_000
"""How many znodes are read before others on the event loop have their turn, and before what was read is kept."""
LOOK_AGAIN_MS: Final = 1000

_T = TypeVar("_T")


@dataclass(slots=True)
class Known:
    """What was read, as of the last change that ZooKeeper notified of."""

    znodes: dict[TopicName, tuple[ZkNode, TopicAssignment]] = field(default_factory=dict)
    """Of the topics in the state, and of no others."""
    state: ClusterState = field(default_factory=ClusterState)
    prepared: dict[TopicName, PreparedTopic] = field(default_factory=dict)
    """What brokers will be sent, of topics of which all is known."""

    def content(self, topic: TopicName, node: ZkNode) -> TopicAssignment | None:
        """What a topic's znode says, where it was read before as it is now."""
        read, content = self.znodes.get(topic, (None, None))
        return content if read == node else None

    def add(self, topic: TopicName, node: ZkNode, content: TopicAssignment) -> None:
        """A topic that is not known yet, or was dropped."""
        self.znodes[topic] = node, content
        self.state.add_topic(topic, content.topic_id, node.czxid, content.partitions)

    def drop(self, topic: TopicName) -> None:
        """Forgets a topic with its states."""
        if self.znodes.pop(topic, None) is not None:
            self.state.remove_topic(topic)
        self.prepared.pop(topic, None)


class Standby:
    """Keeps the state of the cluster while this process is not the controller; `take` hands it to a term that begins.

    `on_heat` is called whenever the process has become hot, or cold."""

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
        """Starts to read, unless that is under way."""
        if self._is_enabled and (self._task is None or self._task.done()):
            self._task = supervised(
                partial(self._run, self._ending),
                name="standby",
                sleep_ms=self._clock.sleep_ms,
                monotonic_ms=self._clock.monotonic_ms,
            )

    @property
    def is_hot(self) -> bool:
        """Whether all was read and is kept current: a takeover would have nothing to read but the last changes."""
        return self._is_read

    @property
    def known(self) -> Known:
        """What is known at this moment; good until the next `await`."""
        return self._known

    def take(self) -> Known:
        """What is known at this moment, to whoever takes over. Standing by ends with that."""
        known, self._known = self._known, Known()
        self._end()
        return known

    async def close(self) -> None:
        """Ends standing by, and forgets everything."""
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
            await asyncio.wait([former])  # it takes away its watch, which would be this one's
        while True:
            try:
                await self._keep_current()
            except TreeWatchUnsupported:
                log.warning("not standing by with the state read: ZooKeeper must be 3.6 or newer for that")
                return
            except (ConnectionLost, SessionExpired) as error:
                log.info("standing by cold until ZooKeeper answers again", reason=str(error))
            await self._clock.sleep_ms(LOOK_AGAIN_MS)

    async def _keep_current(self) -> None:
        """Reads everything, and from then on what changes. Returns when the watch was lost."""
        self._forget()
        self._is_lost = False
        unwatch = await self._zk.watch_tree(paths.BROKERS, self._on_change)
        try:
            names = (await self._zk.children_many([paths.TOPICS]))[0] or ()
            self._changed_topics.update(map(TopicName, names))
            await self._read()
            await self._prepare()
            self._set_is_hot(is_hot=not self._is_lost)
            log.info("standing by with the state read", partitions=len(self._known.state.states))
            while not self._is_lost:
                await self._woken.wait()
                self._woken.clear()
                await self._clock.sleep_ms(GATHER_MS)
                await self._read()
                await self._prepare()
        finally:
            self._forget()  # at once: from now on nobody notifies of changes
            with suppress(ConnectionLost, SessionExpired):
                await unwatch()

    def _on_change(self, path: str | None) -> None:
        """A znode below `/brokers` was created, written or deleted; None: anything may have been."""
        self._woken.set()
        if path is None:
            self._is_lost = True
            self._forget()
        elif path.endswith("/state"):
            with suppress(ValueError):
                partition = paths.topic_partition_of_state(path)
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
        """Reads what has changed, until nothing is left."""
        while (self._changed_topics or self._changed_states) and not self._is_lost:
            await self._read_topics(_some_of(self._changed_topics))
            await self._read_states(_some_of(self._changed_states))

    async def _prepare(self) -> None:
        """Writes what brokers will be sent of the topics that have changed; of all when brokers have come or gone."""
        if self._brokers_changed:
            self._brokers_changed = False
            names = (await self._zk.children_many([paths.BROKER_IDS]))[0] or ()
            ids = map(paths.broker_id_named, names)
            self._brokers = frozenset(broker_id for broker_id in ids if broker_id is not None)
            self._unprepared.update(self._known.znodes)
        writer = TopicWriter(self._known.state, self._brokers)
        while self._unprepared and not self._is_lost:
            topic = self._unprepared.pop()
            if topic in self._known.znodes and (prepared := writer.prepared(topic)) is not None:
                self._known.prepared[topic] = prepared
            await asyncio.sleep(0)

    async def _read_topics(self, topics: Sequence[TopicName]) -> None:
        nodes = await self._zk.read_many([paths.topic(topic) for topic in topics])
        for topic, node in zip(topics, nodes, strict=True):
            # What changed again since it was asked for is read once more; what was lost is not kept.
            if node is None or topic in self._changed_topics or self._is_lost:
                continue
            with suppress(MalformedZnode):  # whoever takes over reports it
                content = codecs.decode_topic(topic, node.data)
                self._known.drop(topic)
                self._known.add(topic, node, content)
                self._unprepare(topic)
                self._changed_states.update(self._known.state.partitions_of(topic))

    async def _read_states(self, partitions: Sequence[TopicPartition]) -> None:
        nodes = await self._zk.read_many(paths.partition_states(partitions))
        read: dict[TopicPartition, PartitionState] = {}
        for partition, node in zip(partitions, nodes, strict=True):
            if node is None or partition in self._changed_states or self._is_lost:
                continue
            if self._known.state.has(partition):  # its topic may be gone, or be read anew with all its states
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
    """Takes as many of the changed ones as are read at once."""
    return [changed.pop() for _ in range(min(len(changed), READ_AT_ONCE))]
