"""Obstacles to a move of the role, and warnings, each with its remedy.

Nothing is written. Permissions are tested with writes that cannot succeed, because they require a version that no znode
has: ZooKeeper checks the ACL before the version."""

from collections.abc import Awaitable, Iterable
from dataclasses import dataclass
from typing import Final

from controller_core.controller.role.role_znode import Holder
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.zk import paths
from controller_core.zk.session import (
    AccessRefused,
    Delete,
    SetData,
    TransactionFailed,
    WriteOp,
    ZkSession,
    ZkVersion,
)
from controller_core.zk.snapshots.reading import read_snapshot
from kontroller.role.picture import RolePicture

_NEVER: Final = ZkVersion(2**31 - 1)
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A finding about a move of the role."""

    said: str
    is_in_the_way: bool = True
    """True if it prevents the move; False for a warning."""


async def find_obstacles(zk: ZkSession, picture: RolePicture, target: BrokerId | None) -> list[Obstacle]:
    """Find the obstacles to moving the role to a Kontroller process, or, for None, to Kafka's brokers. Raises
    `ZkError`."""
    found = [Obstacle(said=text) for text in (*_check_heirs(picture, target), *await _check_migrations(zk, picture))]
    found += [Obstacle(said=text) for text in await _check_rights(zk)]
    minded = await _check_topics(zk)
    if target is None:
        minded += await _check_pending_work(zk)
    return found + [Obstacle(said=text, is_in_the_way=False) for text in minded]


def _check_heirs(picture: RolePicture, target: BrokerId | None) -> Iterable[str]:
    if picture.request is not None and picture.request.holder is not None:
        yield f"process {picture.request.holder} has been requested to take the role: wait for the end of that request"
    if target is None:
        if not picture.brokers:
            yield "no broker is registered: start one"
        return
    process = picture.processes.get(target)
    if process is None:
        others = ", ".join(map(str, sorted(picture.processes))) or "none"
        yield (
            f"Kontroller process {target} does not stand by (processes: {others}): "
            "start it with `kontroller controller run`"
        )
    elif process.hindrance is not None and not picture.has(target):
        yield f"process {target} on {process.whereabouts} is not fit for the role: {process.hindrance}"


async def _check_migrations(zk: ZkSession, picture: RolePicture) -> list[str]:
    if picture.kind is Holder.KRAFT_CONTROLLER:
        return ["a KRaft controller has the role: finish the migration to KRaft, or roll it back"]
    if (await zk.read_many([paths.MIGRATION]))[0] is not None:
        return [f"{paths.MIGRATION} exists, so a migration to KRaft has begun: roll it back as in Kafka's guide"]
    return []


async def _check_rights(zk: ZkSession) -> list[str]:
    probes: list[WriteOp] = [
        SetData(path=paths.CONTROLLER_EPOCH, data=b"", version=_NEVER),
        Delete(path=paths.CONTROLLER, version=_NEVER),
        Delete(path=paths.ROLE_REQUEST, version=_NEVER),
    ]
    return [
        f"this login cannot write {probe.path}: give the --properties of the brokers, or of the controllers"
        for probe in probes
        if await _is_refused(zk.transact([probe]))
    ]


async def _is_refused(write: Awaitable[object]) -> bool:
    try:
        await write
    except AccessRefused:
        return True
    except TransactionFailed:
        return False
    raise AssertionError("a znode has the highest possible version")


async def _check_topics(zk: ZkSession) -> list[str]:
    """Describe moves and problems of partitions. They continue under the next holder of the role."""
    snapshot = await read_snapshot(zk)
    partitions = list(snapshot.list_partitions())
    moving = [each.partition for each in partitions if each.assignment.is_being_reassigned]
    offline = [each.partition for each in partitions if each.state is not None and each.leader is None]
    told = [f"{_describe_count(moving)} being reassigned, which continues: {_list_some(moving)}"] if moving else []
    told += [f"{_describe_count(offline)} offline, and stay so: {_list_some(offline)}"] if offline else []
    bad = {path: reason for path, reason in snapshot.malformed.items() if path.startswith(f"{paths.TOPICS}/")}
    return told + [f"ignored until it is repaired: znode {path}: {reason}" for path, reason in bad.items()]


async def _check_pending_work(zk: ZkSession) -> list[str]:
    """Describe pending work that only Kontroller does."""
    waiting = {
        paths.THROTTLES: "throttles of reassignments are not removed",
        paths.REMOVED_REPLICAS: "replicas that were removed while their broker was down are not deleted",
        paths.PARTITIONS_ADD: "requests to add single partitions wait",
        paths.PARTITIONS_REMOVE: "requests to remove single partitions wait",
        paths.PARTITIONS_REASSIGNED: "requests to move single partitions wait",
    }
    children = await zk.children_many(list(waiting))
    return [
        f"under Kafka's controller {what} (below {path})"
        for (path, what), names in zip(waiting.items(), children, strict=True)
        if names
    ]


def _describe_count(partitions: list[TopicPartition]) -> str:
    return f"{len(partitions)} partitions are" if len(partitions) > 1 else "a partition is"


def _list_some(partitions: list[TopicPartition]) -> str:
    more = f", and {len(partitions) - _SHOWN} more" if len(partitions) > _SHOWN else ""
    return ", ".join(f"{name}-{number}" for name, number in partitions[:_SHOWN]) + more
