"""Replication throttles of reassignments, set and removed by whoever speaks to ZooKeeper: the operator, the controller.

What an owner wants is written first, to a znode of its own below `/kontroller/throttles`; what the configurations must say
follows from all of these (`controller_core.model.throttles`). The configurations are then brought to that, some of them at
a time: one transaction writes them, their notifications for the brokers, and, in the data of `/kontroller/throttles`, what
of them is ours now. It is conditional on everything that it was decided from. So whoever dies, at any write, leaves a state
from which anybody may go on, and two who do it at once agree.
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
    Throttle,
    Values,
    adjust_config,
    combine_throttles,
)
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import LaterVersion, MalformedZnode
from controller_core.zk.compare_and_set import Write, compare_and_set, ensure_znodes, put, reading
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
"""How many configurations one transaction writes, fewer where they are large."""

_PARENTS: Final = (
    paths.KONTROLLER, paths.THROTTLES, paths.CONFIG, paths.BROKER_CONFIGS, paths.TOPIC_CONFIGS, paths.CONFIG_CHANGES,
)  # fmt: skip

Report = Callable[[str, str, MalformedZnode], None]
"""Takes what is unreadable: its path, what follows from that, and why."""


def logged(path: str, consequence: str, error: MalformedZnode) -> None:
    """Says every time what is unreadable: for whoever looks once."""
    log.error(consequence, path=path, error=str(error))


async def set_throttle(
    zk: ZkSession,
    owner: str,
    moves: Mapping[TopicPartition, Move],
    bytes_per_second: int,
    *,
    write: Write | None = None,
) -> None:
    """Limits what the moves take, from now on or with another limit than before; to be called before any of them is asked
    for, also where others of them run.

    None is left for moves of which all topics are gone: nothing would end it.

    An owner stands for one reassignment: the controller ends its throttle when moves of it have begun and all have ended.
    Raises `ValueError` for a limit that is not positive, `MalformedZnode`, `Contended` and what `ZkSession` raises.
    `TooLarge` where a configuration has no room for it: then it is as it was before, as others' could not be set either."""
    if bytes_per_second <= 0:
        raise ValueError(f"a throttle of {bytes_per_second} bytes per second: it must be positive")
    write = write or zk.transact
    await ensure_znodes(zk, [Create(path=parent) for parent in _PARENTS], write)
    path = paths.throttle(owner)

    def limited(node: ZkNode | None) -> list[WriteOp]:
        known = None if node is None else codecs.decode_throttle(path, node.data)
        # Beside moves that have begun there may be others that are yet to: it must not end before they do.
        is_begun = known is not None and known.is_begun and moves.keys() <= known.moves.keys()
        throttle = Throttle(bytes_per_second=bytes_per_second, moves=moves, is_begun=is_begun)
        data = codecs.encode_throttle(throttle)
        return [] if node is not None and node.data == data else [put(path, node, data)]

    (before,) = await zk.read_many([path])
    await compare_and_set(reading(zk, path), limited, write)
    # From here on the deletion of a topic ends it; of one that was gone before there will be no such event.
    if not await topics_of(zk, moves):
        await remove_throttle(zk, owner, write=write)
        return
    # The controller marks what begins from now on; what it began before is seen here.
    running = await _running(zk, moves)
    if running == moves.keys():
        await mark_begun(zk, running, write=write)
    try:
        await settle(zk, write=write)
    except TooLarge:
        await _take_back(zk, owner, before, write)
        raise


async def _take_back(zk: ZkSession, owner: str, before: ZkNode | None, write: Write) -> None:
    """Wants what was wanted before, which had room; moves that have begun meanwhile have begun."""
    path = paths.throttle(owner)
    if before is None:
        await remove_throttle(zk, owner, write=write)
        return
    wanted = codecs.decode_throttle(path, before.data)

    def as_before(node: ZkNode | None) -> list[WriteOp]:
        if node is None:
            return []
        is_begun = wanted.is_begun or codecs.decode_throttle(path, node.data).is_begun
        return [put(path, node, codecs.encode_throttle(replace(wanted, is_begun=is_begun)))]

    await compare_and_set(reading(zk, path), as_before, write)
    await settle(zk, write=write)


async def remove_throttle(
    zk: ZkSession,
    owner: str,
    *,
    expected: Throttle | None = None,
    write: Write | None = None,
    report: Report = logged,
) -> None:
    """Ends an owner's throttle; also where it has none, which may be the rest of an interrupted removal.

    With `expected`, only while it is that one. Raises as `set_throttle`."""
    write = write or zk.transact
    path = paths.throttle(owner)

    def removed(node: ZkNode | None) -> list[WriteOp]:
        is_ours = node is not None and _is_removable(path, node, expected)
        return [Delete(path=path, version=node.version)] if node is not None and is_ours else []

    await compare_and_set(reading(zk, path), removed, write)
    await settle(zk, write=write, report=report)


def _is_removable(path: str, node: ZkNode, expected: Throttle | None) -> bool:
    """Whether it is the expected one, or any. Raises `LaterVersion`; what else is unreadable its owner may remove."""
    try:
        found = codecs.decode_throttle(path, node.data)
    except LaterVersion:
        raise
    except MalformedZnode:
        if expected is not None:
            raise
        return True
    return expected is None or found == expected


async def throttles(zk: ZkSession, report: Report = logged) -> dict[str, Throttle]:
    """What the owners want at present; an unreadable one is left out, and reported."""
    names = (await zk.children_many([paths.THROTTLES]))[0] or ()
    nodes = await zk.read_many([f"{paths.THROTTLES}/{name}" for name in names])
    found = {}
    for name, node in zip(names, nodes, strict=True):
        owner = paths.owner_of_throttle(name)
        try:
            if node is not None:
                found[owner] = codecs.decode_throttle(paths.throttle(owner), node.data)
        except MalformedZnode as error:
            report(f"{paths.THROTTLES}/{name}", "unreadable throttle, ignored: delete it or set it again", error)
    return found


async def mark_begun(zk: ZkSession, partitions: set[TopicPartition], *, write: Write, report: Report = logged) -> None:
    """Remembers that moves of the partitions have begun, so that their throttles end with them."""
    for owner, throttle in (await throttles(zk, report)).items():
        if not throttle.is_begun and not throttle.moves.keys().isdisjoint(partitions):
            path = paths.throttle(owner)
            await compare_and_set(reading(zk, path), partial(_begun, path), write)


def _begun(path: str, node: ZkNode | None) -> list[WriteOp]:
    if node is None:
        return []
    return [put(path, node, codecs.encode_throttle(replace(codecs.decode_throttle(path, node.data), is_begun=True)))]


async def topics_of(zk: ZkSession, moves: Iterable[TopicPartition]) -> set[TopicName]:
    """The topics of the moves that are there."""
    topics = list(dict.fromkeys(move.topic for move in moves))
    nodes = await zk.read_many([paths.topic(topic) for topic in topics])
    return {topic for topic, node in zip(topics, nodes, strict=True) if node is not None}


async def _running(zk: ZkSession, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
    """Those of the partitions that are being reassigned."""
    by_topic = {topic: paths.topic(topic) for topic in dict.fromkeys(partition.topic for partition in partitions)}
    nodes = dict(zip(by_topic, await zk.read_many(list(by_topic.values())), strict=True))
    contents = {topic: codecs.decode_topic(topic, node.data).partitions for topic, node in nodes.items() if node}
    return {
        partition
        for partition in partitions
        if (found := contents.get(partition.topic, {}).get(partition.partition)) and found.is_being_reassigned
    }


async def settle(zk: ZkSession, *, write: Write | None = None, report: Report = logged) -> None:
    """Brings the configurations to what the owners want, in as many transactions as it takes.

    An unreadable configuration is left alone, and reported. Raises `MalformedZnode` where what was set cannot be read,
    `TooLarge` where one configuration, or what is ours of all of them, does not fit, and `Contended`."""
    configs_at_once, is_settled = CONFIGS_PER_WRITE, False
    while not is_settled:
        step = partial(_operations, configs_at_once=configs_at_once, report=report)
        try:
            is_settled = not (await compare_and_set(partial(_read, zk, report), step, write or zk.transact)).is_written
        except TooLarge:
            if configs_at_once == 1:
                raise
            configs_at_once = max(1, configs_at_once // 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entity:
    """One configuration as read."""

    path: EntityPath
    node: ZkNode | None
    topic: ZkNode | None
    """The topic that it is of; a configuration is not created for one that is gone."""
    claims: Mapping[str, Claim]
    wanted: Mapping[str, Values]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    node: ZkNode
    claims: Claims
    entities: tuple[_Entity, ...]


async def _read(zk: ZkSession, report: Report) -> _Found | None:
    """All that the next transaction is decided from; the claims are read first, so that a later change of them shows."""
    (node,) = await zk.read_many([paths.THROTTLES])
    if node is None:
        return None
    claims = codecs.decode_claims(paths.THROTTLES, node.data)
    wanted = combine_throttles((await throttles(zk, report)).values())
    names = sorted({*claims, *wanted})
    configs = await zk.read_many([f"{paths.CONFIG}/{name}" for name in names])
    topics = await zk.read_many([paths.topic(TopicName(name.partition("/")[2])) for name in names])
    entities = tuple(
        _Entity(path=name, node=config, topic=topic, claims=claims.get(name, {}), wanted=wanted.get(name, {}))
        for name, config, topic in zip(names, configs, topics, strict=True)
    )
    return _Found(node=node, claims=claims, entities=entities)


def _operations(found: _Found | None, configs_at_once: int, report: Report) -> list[WriteOp]:
    """The next transaction; empty where everything is as it should be."""
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
        return []
    return [SetData(path=paths.THROTTLES, data=codecs.encode_claims(claims), version=found.node.version), *writes]


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
