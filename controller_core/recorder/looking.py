"""What ZooKeeper says of a cluster, as of now: everything at the first look, then only what has changed.

All znodes that a journal tells of are watched, each with a one-shot watch that the next look arms again. So ZooKeeper
sends at most one notification for a znode between two looks, however often it is written, and a look reads at most what
has changed, in one request after the other. A lost connection fires all watches, so the look after it reads everything.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from controller_core.controller.watched_reads import WatchedReads
from controller_core.journal.batches import StateCopy, TopicCopy
from controller_core.journal.observed import is_replaced
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.metadata import Broker, PartitionState
from controller_core.recorder.view import Role, View, cluster_id_of, decode_topic, features_of, role_of, update
from controller_core.zk import codecs, paths
from controller_core.zk.session import ZkNode, ZkSession

MAX_PATHS: Final = 1000
"""How many znodes are asked for at a time; no request is sent before the last one is answered."""

_ROLE: Final = (paths.CONTROLLER, paths.CONTROLLER_EPOCH)
_ROOTS: Final = (*_ROLE, paths.CLUSTER_ID, paths.FEATURE, paths.BROKER_IDS, paths.TOPICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A view, and which brokers and topics there are, be they readable or not."""

    view: View = field(default_factory=View)
    brokers: tuple[BrokerId, ...] = ()
    topics: tuple[TopicName, ...] = ()


class Looker:
    """Looks at a cluster. An unreadable znode is reported, and counts as what it was before."""

    def __init__(self, zk: ZkSession) -> None:
        self.znodes_read = 0
        self.notified: frozenset[str] = frozenset()
        """The znodes whose watches have fired before or during the last look."""
        self._zk = zk
        self._watched: WatchedReads[str] = WatchedReads(zk, self._note)
        self._due = set(_ROOTS)
        self._woken = asyncio.Event()
        self._seen = _Seen()

    async def wait(self, timeout_ms: float) -> None:
        """Returns when something has changed, at the latest after this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._woken.wait()

    async def look(self, *, everything: bool = False) -> View:
        """The present state; with `everything` also of what no watch has told of.

        Raises `ConnectionLost` and `SessionExpired`: then the next look sees what this one missed."""
        due, self._due = self._due, set()
        self._woken.clear()
        try:
            self._seen = await self._look_at(due | self._known_paths() if everything else due)
        except BaseException:
            self._due |= due
            self._woken.set()
            raise
        self.notified = frozenset(due | self._due)
        return self._seen.view

    async def read_role(self) -> Role | None:
        """Who is the controller, asked anew."""
        return role_of(*await self._zk.read_many(_ROLE))

    def _note(self, path: str) -> None:
        self._due.add(path)
        self._woken.set()

    def _known_paths(self) -> set[str]:
        seen = self._seen
        states = map(paths.partition_state, seen.view.state.states)
        return {*_ROOTS, *map(paths.broker, seen.brokers), *map(paths.topic, seen.topics), *states}

    async def _look_at(self, due: set[str]) -> _Seen:
        view = self._seen.view
        roots = await self._nodes([path for path in (paths.CLUSTER_ID, paths.FEATURE) if path in due])
        role = view.role if due.isdisjoint(_ROLE) else role_of(*(await self._nodes(_ROLE)).values())
        broker_ids, brokers = await self._look_at_brokers(due)
        names, topics = await self._look_at_topics(due)
        states = await self._look_at_states(due, topics)
        features = view.state.features
        if paths.FEATURE in roots:
            features = features_of(roots[paths.FEATURE], features)
        cluster_id = view.cluster_id
        if paths.CLUSTER_ID in roots:
            cluster_id = cluster_id_of(roots[paths.CLUSTER_ID]) or cluster_id
        state = StateCopy(brokers=brokers, topics=topics, states=states, features=features)
        return _Seen(view=View(cluster_id=cluster_id, role=role, state=state), brokers=broker_ids, topics=names)

    async def _look_at_brokers(self, due: set[str]) -> tuple[tuple[BrokerId, ...], Mapping[BrokerId, Broker]]:
        known, held = self._seen.brokers, self._seen.view.state.brokers
        ids = known
        if paths.BROKER_IDS in due:
            names = await self._watched.children(paths.BROKER_IDS, paths.BROKER_IDS)
            ids = tuple(BrokerId(int(name)) for name in names if name.isdecimal())
        wanted = {path: broker for broker in ids if (path := paths.broker(broker)) in due or broker not in known}
        nodes = await self._nodes(wanted)
        read = {wanted[path]: node for path, node in nodes.items()}
        return ids, update({broker: held[broker] for broker in ids if broker in held}, read, codecs.decode_broker)

    async def _look_at_topics(self, due: set[str]) -> tuple[tuple[TopicName, ...], Mapping[TopicName, TopicCopy]]:
        known, held = set(self._seen.topics), self._seen.view.state.topics
        names = self._seen.topics
        if paths.TOPICS in due:
            names = tuple(map(TopicName, await self._watched.children(paths.TOPICS, paths.TOPICS)))
        wanted = {path: name for name in names if (path := paths.topic(name)) in due or name not in known}
        nodes = await self._nodes(wanted)
        read = {wanted[path]: node for path, node in nodes.items()}
        return names, update({name: held[name] for name in names if name in held}, read, decode_topic)

    async def _look_at_states(
        self, due: set[str], topics: Mapping[TopicName, TopicCopy]
    ) -> Mapping[TopicPartition, PartitionState]:
        """The states of the assigned partitions; those of new ones are read and watched from here on."""
        held = self._seen.view.state
        states = dict(held.states)
        wanted = {paths.topic_partition_of_state(path) for path in due if _is_state(path)}
        for name in held.topics.keys() | topics.keys():
            before, after = held.topics.get(name), topics.get(name)
            if before is not after:
                gone, new = _partitions(name, before, after)
                wanted |= new
                for key in gone:
                    states.pop(key, None)
        reading = {paths.partition_state(key): key for key in sorted(wanted) if _is_assigned(key, topics)}
        nodes = await self._nodes(reading)
        read = {reading[path]: node for path, node in nodes.items()}
        return update(states, read, codecs.decode_partition_state)

    async def _nodes(self, wanted: Iterable[str]) -> dict[str, ZkNode | None]:
        """The znodes at the paths, watched from here on."""
        left = list(wanted)
        found: dict[str, ZkNode | None] = {}
        while left:
            part, left = left[:MAX_PATHS], left[MAX_PATHS:]
            found |= dict(zip(part, await self._watched.nodes(part, str), strict=True))
            self.znodes_read += len(part)
        return found


def _is_state(path: str) -> bool:
    return path.startswith(f"{paths.TOPICS}/") and "/partitions/" in path


def _is_assigned(key: TopicPartition, topics: Mapping[TopicName, TopicCopy]) -> bool:
    return key.topic in topics and key.partition in topics[key.topic].partitions


def _partitions(
    name: TopicName, before: TopicCopy | None, after: TopicCopy | None
) -> tuple[set[TopicPartition], set[TopicPartition]]:
    """The partitions of a topic that are gone, and those that are new; all of them where it is another topic."""
    known = {TopicPartition(name, partition) for partition in (before.partitions if before else ())}
    present = {TopicPartition(name, partition) for partition in (after.partitions if after else ())}
    return (known, present) if is_replaced(before, after) else (known - present, present - known)
