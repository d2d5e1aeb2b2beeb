"""Replication throttles of reassignments, set and removed by any ZooKeeper client: the operator or the controller.

An owner's wish is written first, to a znode of its own below `/kontroller/throttles`. The configurations follow from
all wishes (`controller_core.model.throttles`). They are then changed in steps. One transaction writes some
configurations, the notifications for the brokers, and, in the data of `/kontroller/throttles`, the settings that are
ours. It is conditional on everything that the decision was made from. So if a process dies after any write, another one
can continue, and two processes that do it at once agree.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
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


async def set_throttle(
    zk: ZkSession,
    owner: str,
    moves: Mapping[TopicPartition, Move],
    bytes_per_second: int,
    *,
    write: Write | None = None,
) -> None:
    """Limit the traffic of the moves, or change their limit. Call it before requesting any of the moves; others may be
    running.

    No throttle remains if the topics of all moves are gone, because nothing would end it.

    An owner stands for one reassignment: the controller ends its throttle when some of its moves have begun and all
    have ended.

    Raises `ValueError` for a limit that is not positive, `MalformedZnode`, `Contended` and the errors of `ZkSession`.
    Raises `TooLarge` if a configuration has no room for the throttle. The throttle is then as before, because otherwise
    it would also block those of others.
    """
    if bytes_per_second <= 0:
        raise ValueError(f"a throttle of {bytes_per_second} bytes per second: it must be positive")
    write = write or zk.transact
    await ensure_znodes(zk, [Create(path=parent) for parent in _PARENTS], write)
    path = paths.throttle(owner)

    def plan_limit(node: ZkNode | None) -> list[WriteOp]:
        known = None if node is None else codecs.decode_throttle(path, node.data)
        # Some moves may have begun and others not yet. The throttle must not end before those.
        is_begun = known is not None and known.is_begun and moves.keys() <= known.moves.keys()
        throttle = Throttle(bytes_per_second=bytes_per_second, moves=moves, is_begun=is_begun)
        data = codecs.encode_throttle(throttle)
        return [] if node is not None and node.data == data else [put(path, node, data)]

    (before,) = await zk.read_many([path])
    await compare_and_set(make_reader(zk, path), plan_limit, write)
    # From now on, the deletion of a topic ends the throttle. A topic that was deleted before causes no such event.
    if not await find_existing_topics(zk, moves):
        await remove_throttle(zk, owner, write=write)
        return
    # The controller marks moves that begin from now on. Those that began before are found here.
    running = await _find_running(zk, moves)
    if running == moves.keys():
        await mark_begun(zk, running, write=write)
    try:
        await settle(zk, write=write)
    except TooLarge:
        await _take_back(zk, owner, before, write)
        raise


async def _take_back(zk: ZkSession, owner: str, before: ZkNode | None, write: Write) -> None:
    """Restore the earlier wish, which had room. Moves that began since keep that mark."""
    path = paths.throttle(owner)
    if before is None:
        await remove_throttle(zk, owner, write=write)
        return
    wanted = codecs.decode_throttle(path, before.data)

    def plan_restore(node: ZkNode | None) -> list[WriteOp]:
        if node is None:
            return []
        is_begun = wanted.is_begun or codecs.decode_throttle(path, node.data).is_begun
        return [put(path, node, codecs.encode_throttle(replace(wanted, is_begun=is_begun)))]

    await compare_and_set(make_reader(zk, path), plan_restore, write)
    await settle(zk, write=write)


async def remove_throttle(
    zk: ZkSession,
    owner: str,
    *,
    expected: Throttle | None = None,
    write: Write | None = None,
    report: Report = log_unreadable,
) -> None:
    """End an owner's throttle. Call it also to complete an interrupted removal, if the owner has none left.

    With `expected`, end it only if it equals that. Raises like `set_throttle`.
    """
    write = write or zk.transact
    path = paths.throttle(owner)

    def plan_removal(node: ZkNode | None) -> list[WriteOp]:
        is_ours = node is not None and _is_removable(path, node, expected)
        return [Delete(path=path, version=node.version)] if node is not None and is_ours else []

    await compare_and_set(make_reader(zk, path), plan_removal, write)
    await settle(zk, write=write, report=report)


def _is_removable(path: str, node: ZkNode, expected: Throttle | None) -> bool:
    """Return True if it is the expected throttle, or any. Raises `LaterVersion`. The owner may remove other unreadable
    ones."""
    try:
        found = codecs.decode_throttle(path, node.data)
    except LaterVersion:
        raise
    except MalformedZnode:
        if expected is not None:
            raise
        return True
    return expected is None or found == expected


async def read_throttles(zk: ZkSession, report: Report = log_unreadable) -> dict[str, Throttle]:
    """Return the throttles that the owners want. Unreadable ones are left out and reported."""
    names = (await zk.children_many([paths.THROTTLES]))[0] or ()
    nodes = await zk.read_many([f"{paths.THROTTLES}/{name}" for name in names])
    found = {}
    for name, node in zip(names, nodes, strict=True):
        owner = paths.parse_throttle_owner(name)
        try:
            if node is not None:
                found[owner] = codecs.decode_throttle(paths.throttle(owner), node.data)
        except MalformedZnode as error:
            report(f"{paths.THROTTLES}/{name}", "unreadable throttle, ignored: delete it or set it again", error)
    return found


async def mark_begun(
    zk: ZkSession, partitions: set[TopicPartition], *, write: Write, report: Report = log_unreadable
) -> None:
    """Note that moves of the partitions have begun, so that their throttles end with them."""
    for owner, throttle in (await read_throttles(zk, report)).items():
        if not throttle.is_begun and not throttle.moves.keys().isdisjoint(partitions):
            path = paths.throttle(owner)
            await compare_and_set(make_reader(zk, path), partial(_plan_begun_mark, path), write)


def _plan_begun_mark(path: str, node: ZkNode | None) -> list[WriteOp]:
    if node is None:
        return []
    return [put(path, node, codecs.encode_throttle(replace(codecs.decode_throttle(path, node.data), is_begun=True)))]


async def find_existing_topics(zk: ZkSession, moves: Iterable[TopicPartition]) -> set[TopicName]:
    """Return the topics of the moves that still exist."""
    topics = list(dict.fromkeys(move.topic for move in moves))
    nodes = await zk.read_many([paths.topic(topic) for topic in topics])
    return {topic for topic, node in zip(topics, nodes, strict=True) if node is not None}


async def _find_running(zk: ZkSession, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
    """Return the partitions that are being reassigned."""
    by_topic = {topic: paths.topic(topic) for topic in dict.fromkeys(partition.topic for partition in partitions)}
    nodes = dict(zip(by_topic, await zk.read_many(list(by_topic.values())), strict=True))
    contents = {topic: codecs.decode_topic(topic, node.data).partitions for topic, node in nodes.items() if node}
    return {
        partition
        for partition in partitions
        if (found := contents.get(partition.topic, {}).get(partition.partition)) and found.is_being_reassigned
    }


async def settle(zk: ZkSession, *, write: Write | None = None, report: Report = log_unreadable) -> None:
    """Change the configurations to what the owners want, in as many transactions as needed.

    An unreadable configuration is left unchanged and reported. Raises `MalformedZnode` if the claims are unreadable,
    `TooLarge` if one configuration or all claims do not fit into a transaction, and `Contended`.
    """
    configs_at_once, is_settled = CONFIGS_PER_WRITE, False
    while not is_settled:
        step = partial(_operations, configs_at_once=configs_at_once, report=report)
        try:
            is_settled = not (await compare_and_set(partial(_read, zk, report), step, write or zk.transact)).is_written
        except TooLarge:
            # Large configurations may exceed one request together, so try fewer at a time.
            if configs_at_once == 1:
                raise
            configs_at_once = max(1, configs_at_once // 4)


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


async def _read(zk: ZkSession, report: Report) -> _Found | None:
    """Read everything that the next transaction depends on. The claims come first, so that a later change of them is
    noticed."""
    (node,) = await zk.read_many([paths.THROTTLES])
    if node is None:
        return None
    claims = codecs.decode_record(paths.THROTTLES, node.data).claims
    wanted = combine_throttles((await read_throttles(zk, report)).values())
    names = sorted({*claims, *wanted})
    configs = await zk.read_many([f"{paths.CONFIG}/{name}" for name in names])
    topics = await zk.read_many([paths.topic(TopicName(name.partition("/")[2])) for name in names])
    entities = tuple(
        _Entity(path=name, node=config, topic=topic, claims=claims.get(name, {}), wanted=wanted.get(name, {}))
        for name, config, topic in zip(names, configs, topics, strict=True)
    )
    return _Found(node=node, claims=claims, entities=entities)


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
