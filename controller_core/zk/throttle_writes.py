"""Replication throttles of reassignments, set and removed by any ZooKeeper client: the operator or the controller.

An owner's wish is written first, to a znode of its own below `/kontroller/throttles`. The configurations follow from
all wishes (`controller_core.model.throttles`). They are then changed in steps. One transaction writes some
configurations, the notifications for the brokers, and, in the data of `/kontroller/throttles`, the settings that are
ours. It is conditional on everything that the decision was made from. So if a process dies after any write, another one
can continue, and two processes that do it at once agree.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import structlog

from controller_core.model.ids import TopicName, TopicPartition
from controller_core.model.throttles import (
    Claim,
    Claims,
    EntityPath,
    Move,
    Record,
    Throttle,
    Values,
    adjust_config,
    combine_throttles,
)
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import LaterVersion, MalformedZnode
from controller_core.zk.compare_and_set import Write, compare_and_set, ensure_znodes, make_reader, put
from controller_core.zk.session import (
    Check,
    Create,
    CreateMode,
    Delete,
    SetData,
    TooLarge,
    WriteOp,
    ZkNode,
    ZkSession,
)

log = structlog.get_logger()

CONFIGS_PER_WRITE: Final = 50
"""Configurations that one transaction writes; fewer if they are large."""

_PARENTS: Final = (
    paths.KONTROLLER, paths.THROTTLES, paths.CONFIG, paths.BROKER_CONFIGS, paths.TOPIC_CONFIGS, paths.CONFIG_CHANGES,
)  # fmt: skip

Report = Callable[[str, str, MalformedZnode], None]
"""Takes a problem with an unreadable znode: its path, the consequence, and the error."""


def log_unreadable(path: str, consequence: str, error: MalformedZnode) -> None:
    """Log an unreadable znode every time, for callers that look only once."""
    log.error(consequence, path=path, error=str(error))


@dataclass(frozen=True, slots=True)
class Throttles:
    """The throttles of a cluster with ZooKeeper."""

    zk: ZkSession
    fenced: Write | None = None
    """Makes the writes of a controller; None: the session makes them."""
    report: Report = log_unreadable

    async def set(self, owner: str, moves: Mapping[TopicPartition, Move], bytes_per_second: int) -> None:
        """Limit the traffic of the moves, or change their limit. Call it before requesting any of the moves; others may
        be running.

        No throttle remains if the topics of all moves are gone, because nothing would end it.

        An owner stands for one reassignment: the controller ends its throttle when some of its moves have begun and all
        have ended.

        Raises `ValueError` for a limit that is not positive, `MalformedZnode`, `Contended` and the errors of
        `ZkSession`. Raises `TooLarge` if a configuration has no room for the throttle. The throttle is then as before,
        because otherwise it would also block those of others.
        """
        if bytes_per_second <= 0:
            raise ValueError(f"a throttle of {bytes_per_second} bytes per second: it must be positive")
        await ensure_znodes(self.zk, [Create(path=parent) for parent in _PARENTS], self._write)
        (before,) = await self.zk.read_many([paths.throttle(owner)])
        await self._change(owner, partial(_plan_wish, Throttle(bytes_per_second=bytes_per_second, moves=moves)))
        # From now on, the deletion of a topic ends the throttle. A topic that was deleted before causes no such event.
        topics = await self.find_topics(moves)
        if not topics:
            await self.remove(owner)
            return
        # The controller marks moves that begin from now on. Those that began before are found here.
        assignments = {topic: codecs.decode_topic(topic, node.data).partitions for topic, node in topics.items()}
        found = [assignments.get(move.topic, {}).get(move.partition) for move in moves]
        if all(each is not None and each.is_being_reassigned for each in found):
            await self.mark_begun(moves.keys())
        try:
            await self.settle()
        except TooLarge:
            # The earlier wish had room.
            if before is None:
                await self.remove(owner)
            else:
                wish = codecs.decode_throttle(paths.throttle(owner), before.data)
                await self._change(owner, partial(_plan_return, wish))
                await self.settle()
            raise

    async def remove(self, owner: str, *, expected: Throttle | None = None) -> None:
        """End an owner's throttle. Call it also to complete an interrupted removal, if the owner has none left.

        With `expected`, end it only if it equals that. Raises like `set`.
        """
        await self.withdraw(owner, expected=expected)
        await self.settle()

    async def withdraw(self, owner: str, *, expected: Throttle | None = None) -> None:
        """Like `remove`, but leave the configurations to the next `settle`."""
        await self._change(owner, partial(_plan_removal, expected))

    async def read(self) -> dict[str, Throttle]:
        """Return the throttles that the owners want. Unreadable ones are left out and reported."""
        names = (await self.zk.children_many([paths.THROTTLES]))[0] or ()
        nodes = await self.zk.read_many([f"{paths.THROTTLES}/{name}" for name in names])
        found = {}
        for name, node in zip(names, nodes, strict=True):
            path = f"{paths.THROTTLES}/{name}"
            try:
                if node is not None:
                    found[paths.parse_throttle_owner(name)] = codecs.decode_throttle(path, node.data)
            except MalformedZnode as error:
                self.report(path, "unreadable throttle, ignored: delete it or set it again", error)
        return found

    async def mark_begun(self, partitions: Set[TopicPartition]) -> None:
        """Note that moves of the partitions have begun, so that their throttles end with them."""
        for owner, throttle in (await self.read()).items():
            if not throttle.is_begun and not throttle.moves.keys().isdisjoint(partitions):
                await self._change(owner, _plan_begun_mark)

    async def find_topics(self, moves: Iterable[TopicPartition]) -> dict[TopicName, ZkNode]:
        """Return the topics of the moves that still exist."""
        topics = list(dict.fromkeys(move.topic for move in moves))
        nodes = await self.zk.read_many([paths.topic(topic) for topic in topics])
        return {topic: node for topic, node in zip(topics, nodes, strict=True) if node is not None}

    async def settle(self) -> None:
        """Change the configurations to what the owners want, in as many transactions as needed.

        An unreadable configuration is left unchanged and reported. Raises `MalformedZnode` if the claims are unreadable,
        `TooLarge` if one configuration or all claims do not fit into a transaction, and `Contended`.
        """
        configs_at_once, is_settled = CONFIGS_PER_WRITE, False
        while not is_settled:
            step = partial(_operations, configs_at_once=configs_at_once, report=self.report)
            try:
                is_settled = not (await compare_and_set(self._read_all, step, self._write)).is_written
            except TooLarge:
                # Large configurations may exceed one request together, so try fewer at a time.
                if configs_at_once == 1:
                    raise
                configs_at_once = max(1, configs_at_once // 4)

    @property
    def _write(self) -> Write:
        return self.fenced or self.zk.transact

    async def _change(self, owner: str, plan: Callable[[str, ZkNode | None], Sequence[WriteOp]]) -> None:
        """Change the wish of an owner."""
        path = paths.throttle(owner)
        await compare_and_set(make_reader(self.zk, path), partial(plan, path), self._write)

    async def _read_all(self) -> "_Found | None":
        """Read everything that the next transaction depends on. The claims come first, so that a later change of them
        is noticed."""
        (node,) = await self.zk.read_many([paths.THROTTLES])
        if node is None:
            return None
        claims = codecs.decode_record(paths.THROTTLES, node.data).claims
        wanted = combine_throttles((await self.read()).values())
        names = sorted({*claims, *wanted})
        configs = await self.zk.read_many([f"{paths.CONFIG}/{name}" for name in names])
        topics = await self.zk.read_many([paths.topic(TopicName(name.partition("/")[2])) for name in names])
        entities = tuple(
            _Entity(path=name, node=config, topic=topic, claims=claims.get(name, {}), wanted=wanted.get(name, {}))
            for name, config, topic in zip(names, configs, topics, strict=True)
        )
        return _Found(node=node, claims=claims, entities=entities)


def _plan_wish(wish: Throttle, path: str, node: ZkNode | None) -> list[WriteOp]:
    known = None if node is None else codecs.decode_throttle(path, node.data)
    # Some moves may have begun and others not yet. The throttle must not end before those.
    is_still_begun = known is not None and known.is_begun and wish.moves.keys() <= known.moves.keys()
    data = codecs.encode_throttle(replace(wish, is_begun=is_still_begun))
    return [] if node is not None and node.data == data else [put(path, node, data)]


def _plan_return(wish: Throttle, path: str, node: ZkNode | None) -> list[WriteOp]:
    """Return to an earlier wish, unless it was ended since. If moves have begun since, it keeps that mark."""
    if node is None:
        return []
    is_begun = wish.is_begun or codecs.decode_throttle(path, node.data).is_begun
    return [put(path, node, codecs.encode_throttle(replace(wish, is_begun=is_begun)))]


def _plan_removal(expected: Throttle | None, path: str, node: ZkNode | None) -> list[WriteOp]:
    """Remove the expected throttle, or any. Raises `LaterVersion`. The owner may remove other unreadable ones."""
    if node is None:
        return []
    try:
        is_other = expected not in (None, codecs.decode_throttle(path, node.data))
    except LaterVersion:
        raise
    except MalformedZnode:
        if expected is not None:
            raise
        is_other = False
    return [] if is_other else [Delete(path=path, version=node.version)]


def _plan_begun_mark(path: str, node: ZkNode | None) -> list[WriteOp]:
    if node is None:
        return []
    return [put(path, node, codecs.encode_throttle(replace(codecs.decode_throttle(path, node.data), is_begun=True)))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entity:
    """One configuration as read."""

    path: EntityPath
    node: ZkNode | None
    topic: ZkNode | None
    """The topic of the configuration. No configuration is created for a deleted topic."""
    claims: Mapping[str, Claim]
    wanted: Mapping[str, Values]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    node: ZkNode
    claims: Claims
    entities: tuple[_Entity, ...]


def _operations(found: _Found | None, configs_at_once: int, report: Report) -> list[WriteOp]:
    """Return the next transaction; empty if everything is as wanted."""
    if found is None:
        return []
    claims: dict[EntityPath, Mapping[str, Claim]] = dict(found.claims)
    writes: list[WriteOp] = []
    changed = 0
    for entity in found.entities:
        if changed == configs_at_once:
            break
        operations, claimed = _changes(entity, report)
        if operations or claimed != entity.claims:
            changed += 1
            writes += operations
            claims[entity.path] = claimed
    if not changed:
        # Writing the claims, even if they are unchanged, makes the transaction conditional on their version.
        return []
    return [
        SetData(path=paths.THROTTLES, data=codecs.encode_record(Record(claims=claims)), version=found.node.version),
        *writes,
    ]


def _changes(entity: _Entity, report: Report) -> tuple[list[WriteOp], Mapping[str, Claim]]:
    path = f"{paths.CONFIG}/{entity.path}"
    is_topic = entity.path.startswith("topics/")
    wanted = {} if is_topic and entity.topic is None else entity.wanted
    try:
        config = codecs.decode_config(entity.node.data, path) if entity.node else {}
    except MalformedZnode as error:
        report(path, "unreadable configuration, its throttle is left alone", error)
        return [], entity.claims
    after, claimed = adjust_config(config, entity.claims, wanted)
    if after == config:
        return [], claimed
    operations: list[WriteOp] = [
        put(path, entity.node, codecs.encode_config(after)),
        Create(
            path=paths.CONFIG_CHANGE_PREFIX,
            data=codecs.encode_config_change(entity.path),
            mode=CreateMode.PERSISTENT_SEQUENTIAL,
        ),
    ]
    if is_topic and entity.node is None and entity.topic is not None:
        name = TopicName(entity.path.partition("/")[2])
        operations.append(Check(path=paths.topic(name), version=entity.topic.version))
    return operations, claimed
