"""Reads a cluster from ZooKeeper: everything at the first look, then only what has changed.

All recorded znodes are watched, each with a one-shot watch that the next look sets again. So ZooKeeper sends at most
one notification for a znode between two looks, however often it is written, and a look reads only what has changed, one
request after another. A lost connection fires all watches, so the next look reads everything."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from controller_core.controller.loop.watched_reads import WatchedReads
from controller_core.journal.batches import StateCopy, TopicCopy
from controller_core.journal.changes import Change, Kind
from controller_core.journal.observed import is_replaced
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import BrokerId, TopicName, TopicPartition
from controller_core.model.metadata import PartitionState
from controller_core.model.snapshot import Controller
from controller_core.recorder.looker import ClusterLost, OutOfSight, View
from controller_core.recorder.znodes import decoding
from controller_core.zk import codecs, paths
from controller_core.zk.session import ConnectionLost, SessionExpired, SessionState, ZkNode, ZkSession

MAX_PATHS: Final = 1000
"""Znodes in one request. No request is sent before the last one is answered."""

_ROLE: Final = (paths.CONTROLLER, paths.CONTROLLER_EPOCH)
_ROOTS: Final = (*_ROLE, paths.CLUSTER_ID, paths.FEATURE, paths.BROKER_IDS, paths.TOPICS, paths.BROKER_CONFIGS)

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The names of existing znodes, readable or not."""

    brokers: frozenset[BrokerId] = frozenset()
    topics: frozenset[TopicName] = frozenset()
    configured: frozenset[BrokerId | None] = frozenset()
    """Brokers that have a dynamic configuration; None stands for all of them."""


class ZnodesLooker:
    """A `Looker`. `timeout_ms`: how long ZooKeeper may be out of reach."""

    def __init__(self, zk: ZkSession, *, timeout_ms: int) -> None:
        self.reads = 0
        self._zk = zk
        self._timeout_ms = timeout_ms
        self._watched: WatchedReads[str] = WatchedReads(zk, self._on_change)
        self._due = set(_ROOTS)
        self._woken = asyncio.Event()
        self._names = _Names()
        self._view = View()
        self._is_blind = False
        """True if the connection was lost since the last look."""
        self._is_unobserved: Callable[[Change], bool] = lambda _: False
        zk.add_listener(self._on_session_state)

    async def wait(self, timeout_ms: float) -> None:
        """Return when something has changed, at the latest after this time."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._woken.wait()

    async def look(self, *, everything: bool = False) -> View:
        """Implement `Looker`. With `everything`, also read znodes whose watches have not fired."""
        is_blind, self._is_blind = self._is_blind, False
        due, self._due = self._due, set()
        self._woken.clear()
        try:
            with _convert_errors():
                self._names, self._view = await self._look_at(due | self._list_known_paths() if everything else due)
        except BaseException:
            # Some of the watches may have been set and others not, so the next look reads all of these again.
            self._is_blind = True
            self._due |= due
            self._woken.set()
            raise
        self._is_unobserved = _find_unobserved(is_blind, frozenset(due | self._due) if everything else None)
        return self._view

    def is_unobserved(self, change: Change) -> bool:
        """Implement `Looker`: True for all changes after a blind time, and for changes without a fired watch in a look
        at everything."""
        return self._is_unobserved(change)

    async def read_role(self) -> Controller | None:
        """Implement `Looker`."""
        with _convert_errors():
            return decoding.decode_role(*await self._zk.read_many(_ROLE))

    async def regain_sight(self) -> None:
        """Implement `Looker`."""
        if not await self._zk.wait_connected(self._timeout_ms):
            raise ClusterLost(
                f"ZooKeeper was out of reach for {self._timeout_ms} ms: check its servers and the network, "
                "or allow more time with --zookeeper-timeout-ms"
            )

    def _on_change(self, path: str) -> None:
        self._due.add(path)
        self._woken.set()

    def _on_session_state(self, state: SessionState) -> None:
        if state is not SessionState.CONNECTED:
            self._is_blind = True

    def _list_known_paths(self) -> set[str]:
        names = self._names
        brokers, configured = map(paths.broker, names.brokers), map(paths.broker_config, names.configured)
        topics, configs = map(paths.topic, names.topics), map(paths.topic_config, names.topics)
        states = map(paths.partition_state, self._view.state.states)
        return {*_ROOTS, *brokers, *configured, *topics, *configs, *states}

    async def _look_at(self, due: set[str]) -> tuple[_Names, View]:
        known, held = self._names, self._view.state
        role = (
            self._view.role
            if due.isdisjoint(_ROLE)
            else decoding.decode_role(*(await self._read_nodes(_ROLE)).values())
        )
        names = known.topics
        if paths.TOPICS in due:
            names = frozenset(map(TopicName, await self._watched.read_children(paths.TOPICS, paths.TOPICS)))
        topic_znodes = await self._read_changed(due, names, known.topics, paths.topic)
        topics = decoding.update_values(
            held.topics, known.topics - names, topic_znodes, partial(decoding.decode_topic, held.topics)
        )
        states = await self._look_at_states(due, topics)
        # The controller derives leaderships from brokers and configurations, so those are read after the leaderships:
        # by then the watches of the causes have fired, too.
        due = due | self._due
        topic_configs = await self._read_changed(due, names, known.topics, paths.topic_config)
        brokers, broker_znodes = await self._look_at_brokers(due)
        configured, broker_configs = await self._look_at_broker_configs(due)
        state = StateCopy(
            brokers=decoding.update_values(held.brokers, known.brokers - brokers, broker_znodes, codecs.decode_broker),
            topics=topics,
            states=states,
            features=await self._look_at_features(due),
            topic_configs=decoding.update_values(
                held.topic_configs, known.topics - names, topic_configs, decoding.decode_topic_config
            ),
            broker_configs=decoding.update_values(
                held.broker_configs, known.configured - configured, broker_configs, decoding.decode_broker_config
            ),
        )
        found = View(cluster_id=await self._look_at_cluster_id(due), role=role, state=state)
        return _Names(brokers=brokers, topics=names, configured=configured), found

    async def _look_at_brokers(self, due: set[str]) -> tuple[frozenset[BrokerId], dict[BrokerId, ZkNode | None]]:
        """Return the registered brokers, and the registrations that are new or changed."""
        known = ids = self._names.brokers
        if paths.BROKER_IDS in due:
            ids = decoding.parse_broker_ids(await self._watched.read_children(paths.BROKER_IDS, paths.BROKER_IDS))
        return ids, await self._read_changed(due, ids, known, paths.broker)

    async def _look_at_broker_configs(
        self, due: set[str]
    ) -> tuple[frozenset[BrokerId | None], dict[BrokerId | None, ZkNode | None]]:
        """Return the brokers with a dynamic configuration, and those configurations that are new or changed."""
        known = ids = self._names.configured
        if paths.BROKER_CONFIGS in due:
            ids = decoding.parse_configured_brokers(
                await self._watched.read_children(paths.BROKER_CONFIGS, paths.BROKER_CONFIGS)
            )
        return ids, await self._read_changed(due, ids, known, paths.broker_config)

    async def _look_at_features(self, due: set[str]) -> FinalizedFeatures | None:
        held = self._view.state.features
        if paths.FEATURE not in due:
            return held
        return decoding.decode_features((await self._read_nodes([paths.FEATURE]))[paths.FEATURE], held)

    async def _look_at_cluster_id(self, due: set[str]) -> str | None:
        held = self._view.cluster_id
        if paths.CLUSTER_ID not in due:
            return held
        return decoding.decode_cluster_id((await self._read_nodes([paths.CLUSTER_ID]))[paths.CLUSTER_ID]) or held

    async def _look_at_states(
        self, due: set[str], topics: Mapping[TopicName, TopicCopy]
    ) -> Mapping[TopicPartition, PartitionState]:
        """Return the states of assigned partitions. Those of new partitions are read and watched from here on."""
        held = self._view.state
        fresh: set[TopicPartition] = set()
        gone: set[TopicPartition] = set()
        for name in held.topics.keys() | topics.keys():
            before, after = held.topics.get(name), topics.get(name)
            if before is not after:
                ended, begun = _compare_partitions(name, before, after)
                gone |= ended
                fresh |= begun
        notified = {paths.parse_partition_state(path) for path in due if _is_state(path)}
        wanted = [key for key in sorted(fresh | notified) if _is_assigned(key, topics)]
        if not wanted and not gone:
            return held.states
        read = await self._read_changed(due, wanted, (), paths.partition_state)
        return decoding.update_values(held.states, gone, read, codecs.decode_partition_state)

    async def _read_changed(
        self, due: set[str], keys: Iterable[K], known: Collection[K], path_of: Callable[[K], str]
    ) -> dict[K, ZkNode | None]:
        """Return the znodes of new keys, and of keys whose watches have fired."""
        wanted = {path: key for key in keys if (path := path_of(key)) in due or key not in known}
        return {wanted[path]: node for path, node in (await self._read_nodes(wanted)).items()}

    async def _read_nodes(self, wanted: Iterable[str]) -> dict[str, ZkNode | None]:
        """Return the znodes at the paths, and watch them from here on."""
        left = list(wanted)
        found: dict[str, ZkNode | None] = {}
        for start in range(0, len(left), MAX_PATHS):
            part = left[start : start + MAX_PATHS]
            found |= dict(zip(part, await self._watched.read_nodes(part, str), strict=True))
        self.reads += len(left)
        return found


@contextlib.contextmanager
def _convert_errors() -> Iterator[None]:
    try:
        yield
    except (ConnectionLost, SessionExpired) as error:
        raise OutOfSight(f"nothing is seen until ZooKeeper is back: {error}") from error


def _is_state(path: str) -> bool:
    return path.startswith(f"{paths.TOPICS}/") and "/partitions/" in path


def _is_assigned(key: TopicPartition, topics: Mapping[TopicName, TopicCopy]) -> bool:
    return key.topic in topics and key.partition in topics[key.topic].partitions


def _compare_partitions(
    name: TopicName, before: TopicCopy | None, after: TopicCopy | None
) -> tuple[set[TopicPartition], set[TopicPartition]]:
    """Return the partitions of a topic that are gone, and those that are new; all of them if the topic was replaced."""
    known = {TopicPartition(name, partition) for partition in (before.partitions if before else ())}
    present = {TopicPartition(name, partition) for partition in (after.partitions if after else ())}
    return (known, present) if is_replaced(before, after) else (known - present, present - known)


def _find_unobserved(is_blind: bool, notified: frozenset[str] | None) -> Callable[[Change], bool]:
    """Return the predicate for `unobserved` changes: all after a blind time, otherwise those without a watch in a look
    at everything."""
    if is_blind:
        return lambda _: True
    if notified is None:
        return lambda _: False
    return lambda change: notified.isdisjoint(_list_watched_paths(change))


def _list_watched_paths(change: Change) -> Iterator[str]:
    """Yield the znodes whose watches fire at a change: its own, and its parents if something was created or deleted."""
    has_come_or_gone = change.before is None or change.after is None
    match change.kind:
        case Kind.BROKER:
            own, parents = paths.broker(change.key), [paths.BROKER_IDS]
        case Kind.BROKER_CONFIG:
            own, parents = paths.broker_config(change.key), [paths.BROKER_CONFIGS]
        case Kind.FEATURES:
            own, parents = paths.FEATURE, []
        case Kind.TOPIC:
            own, parents = paths.topic(change.key), [paths.TOPICS]
        case Kind.TOPIC_CONFIG:
            own, parents = paths.topic_config(change.key), [paths.TOPICS]
        case Kind.ASSIGNMENT:
            own, parents = paths.topic(change.key.topic), [paths.TOPICS]
        case _:
            own, parents = paths.partition_state(change.key), [paths.topic(change.key.topic), paths.TOPICS]
    yield own
    if has_come_or_gone:
        yield from parents
