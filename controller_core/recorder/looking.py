"""What ZooKeeper says of a cluster, as of now: everything at the first look, then only what has changed.

All znodes that a journal records are watched, each with a one-shot watch that the next look arms again. So ZooKeeper
sends at most one notification for a znode between two looks, however often it is written, and a look reads at most what
has changed, in one request after the other. A lost connection fires all watches, so the look after it reads everything.
"""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from controller_core.controller.loop.watched_reads import WatchedReads
from controller_core.journal.batches import StateCopy, TopicCopy
from controller_core.journal.observed import is_replaced
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.metadata import PartitionState
from controller_core.recorder import view
from controller_core.recorder.view import Role, View
from controller_core.zk import codecs, paths
from controller_core.zk.session import ZkNode, ZkSession

MAX_PATHS: Final = 1000
"""How many znodes are asked for at a time; no request is sent before the last one is answered."""

_ROLE: Final = (paths.CONTROLLER, paths.CONTROLLER_EPOCH)
_ROOTS: Final = (*_ROLE, paths.CLUSTER_ID, paths.FEATURE, paths.BROKER_IDS, paths.TOPICS, paths.BROKER_CONFIGS)

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """What there is, be it readable or not."""

    brokers: frozenset[BrokerId] = frozenset()
    topics: frozenset[TopicName] = frozenset()
    configured: frozenset[BrokerId | None] = frozenset()
    """The brokers that have a dynamic configuration; None stands for all of them."""


class Looker:
    """Looks at a cluster. An unreadable znode is reported, and counts as what it was before."""

    def __init__(self, zk: ZkSession) -> None:
        self.znodes_read = 0
        self.notified: frozenset[str] = frozenset()
        """The znodes whose watches have fired before or during the last look."""
        self._zk = zk
        self._watched: WatchedReads[str] = WatchedReads(zk, self._on_change)
        self._due = set(_ROOTS)
        self._woken = asyncio.Event()
        self._names = _Names()
        self._view = View()

    async def wait(self, timeout_ms: float) -> None:
        """Returns when something has changed, at the latest after this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._woken.wait()

    async def look(self, *, everything: bool = False) -> View:
        """The present state; with `everything` also of what no watch has fired for.

        Raises `ConnectionLost` and `SessionExpired`: then the next look sees what this one missed."""
        due, self._due = self._due, set()
        self._woken.clear()
        try:
            self._names, self._view = await self._look_at(due | self._known_paths() if everything else due)
        except BaseException:
            self._due |= due
            self._woken.set()
            raise
        self.notified = frozenset(due | self._due)
        return self._view

    async def read_role(self) -> Role | None:
        """Who is the controller, asked anew."""
        return view.role_of(*await self._zk.read_many(_ROLE))

    def _on_change(self, path: str) -> None:
        self._due.add(path)
        self._woken.set()

    def _known_paths(self) -> set[str]:
        names = self._names
        brokers, configured = map(paths.broker, names.brokers), map(paths.broker_config, names.configured)
        topics, configs = map(paths.topic, names.topics), map(paths.topic_config, names.topics)
        states = map(paths.partition_state, self._view.state.states)
        return {*_ROOTS, *brokers, *configured, *topics, *configs, *states}

    async def _look_at(self, due: set[str]) -> tuple[_Names, View]:
        known, held = self._names, self._view.state
        role = self._view.role if due.isdisjoint(_ROLE) else view.role_of(*(await self._nodes(_ROLE)).values())
        names = known.topics
        if paths.TOPICS in due:
            names = frozenset(map(TopicName, await self._watched.children(paths.TOPICS, paths.TOPICS)))
        topic_znodes = await self._changed(due, names, known.topics, paths.topic)
        topics = view.updated(held.topics, known.topics - names, topic_znodes, partial(view.topic_of, held.topics))
        states = await self._look_at_states(due, topics)
        # A leadership follows from what brokers and configurations were before it: that is looked at after it, and the
        # watches that it follows from have fired by now.
        due = due | self._due
        topic_configs = await self._changed(due, names, known.topics, paths.topic_config)
        brokers, broker_znodes = await self._look_at_brokers(due)
        configured, broker_configs = await self._look_at_broker_configs(due)
        state = StateCopy(
            brokers=view.updated(held.brokers, known.brokers - brokers, broker_znodes, codecs.decode_broker),
            topics=topics,
            states=states,
            features=await self._look_at_features(due),
            topic_configs=view.updated(held.topic_configs, known.topics - names, topic_configs, view.topic_config_of),
            broker_configs=view.updated(
                held.broker_configs, known.configured - configured, broker_configs, view.broker_config_of
            ),
        )
        found = View(cluster_id=await self._look_at_cluster_id(due), role=role, state=state)
        return _Names(brokers=brokers, topics=names, configured=configured), found

    async def _look_at_brokers(self, due: set[str]) -> tuple[frozenset[BrokerId], dict[BrokerId, ZkNode | None]]:
        """The registered brokers, and the registrations that are new or changed."""
        known = ids = self._names.brokers
        if paths.BROKER_IDS in due:
            ids = view.broker_ids(await self._watched.children(paths.BROKER_IDS, paths.BROKER_IDS))
        return ids, await self._changed(due, ids, known, paths.broker)

    async def _look_at_broker_configs(
        self, due: set[str]
    ) -> tuple[frozenset[BrokerId | None], dict[BrokerId | None, ZkNode | None]]:
        """The brokers that have a dynamic configuration, and those of them that are new or changed."""
        known = ids = self._names.configured
        if paths.BROKER_CONFIGS in due:
            ids = view.configured(await self._watched.children(paths.BROKER_CONFIGS, paths.BROKER_CONFIGS))
        return ids, await self._changed(due, ids, known, paths.broker_config)

    async def _look_at_features(self, due: set[str]) -> FinalizedFeatures | None:
        held = self._view.state.features
        if paths.FEATURE not in due:
            return held
        return view.features_of((await self._nodes([paths.FEATURE]))[paths.FEATURE], held)

    async def _look_at_cluster_id(self, due: set[str]) -> str | None:
        held = self._view.cluster_id
        if paths.CLUSTER_ID not in due:
            return held
        return view.cluster_id_of((await self._nodes([paths.CLUSTER_ID]))[paths.CLUSTER_ID]) or held

    async def _look_at_states(
        self, due: set[str], topics: Mapping[TopicName, TopicCopy]
    ) -> Mapping[TopicPartition, PartitionState]:
        """The states of the assigned partitions; those of new ones are read and watched from here on."""
        held = self._view.state
        fresh: set[TopicPartition] = set()
        gone: set[TopicPartition] = set()
        for name in held.topics.keys() | topics.keys():
            before, after = held.topics.get(name), topics.get(name)
            if before is not after:
                ended, begun = _partitions(name, before, after)
                gone |= ended
                fresh |= begun
        notified = {paths.topic_partition_of_state(path) for path in due if _is_state(path)}
        wanted = [key for key in sorted(fresh | notified) if _is_assigned(key, topics)]
        if not wanted and not gone:
            return held.states
        read = await self._changed(due, wanted, (), paths.partition_state)
        return view.updated(held.states, gone, read, codecs.decode_partition_state)

    async def _changed(
        self, due: set[str], keys: Iterable[K], known: Collection[K], path_of: Callable[[K], str]
    ) -> dict[K, ZkNode | None]:
        """The znodes of those keys that are new, or whose watches have fired."""
        wanted = {path: key for key in keys if (path := path_of(key)) in due or key not in known}
        return {wanted[path]: node for path, node in (await self._nodes(wanted)).items()}

    async def _nodes(self, wanted: Iterable[str]) -> dict[str, ZkNode | None]:
        """The znodes at the paths, watched from here on."""
        left = list(wanted)
        found: dict[str, ZkNode | None] = {}
        for start in range(0, len(left), MAX_PATHS):
            part = left[start : start + MAX_PATHS]
            found |= dict(zip(part, await self._watched.nodes(part, str), strict=True))
        self.znodes_read += len(left)
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
