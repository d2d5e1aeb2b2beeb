"""The steps of a broker before its registration (seed 004's on_broker_startup):

1. Create the parents of all znodes, and the cluster id if this is the first broker.
2. Check the finalized features (`features`).
3. Open the log directories, which must belong to this broker.
4. Delete the logs of partitions that are no longer assigned here, because nobody else would.

The seed's steps 2 and 3, reading the leaderships, are missing: the controller sends them after the registration
(LeaderAndIsr), and an earlier read could be out of date.
"""

import base64
import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import structlog

from controller_core.model.ids import BrokerId, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import TopicAssignment
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.compare_and_set import ensure_znodes
from controller_core.zk.session import Create, ZkSession
from replica_broker.disk.disk import DiskError
from replica_broker.log.directories import LogDirectories

log = structlog.get_logger()

_PARENTS: Final = (
    paths.CLUSTER,
    paths.CONSUMERS,
    paths.BROKERS,
    paths.BROKER_IDS,
    paths.TOPICS,
    paths.CONFIG,
    paths.TOPIC_CONFIGS,
    paths.BROKER_CONFIGS,
    paths.CONFIG_CHANGES,
    paths.USER_CONFIGS,
    paths.CLIENT_CONFIGS,
    paths.ADMIN,
    paths.DELETE_TOPICS,
    paths.ISR_CHANGE_NOTIFICATION,
    paths.LOG_DIR_EVENT_NOTIFICATION,
)


async def ensure_parents(zk: ZkSession) -> None:
    """Create the znodes that every broker needs, like a stock broker at its start."""
    await ensure_znodes(zk, [Create(path=path) for path in _PARENTS], zk.transact)


async def read_cluster_id(zk: ZkSession) -> str:
    """Return the cluster id. Creates one if there is none. Raises `MalformedZnode`."""
    (znode,) = await zk.read_many([paths.CLUSTER_ID])
    if znode is None:
        new = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        data = json.dumps({"version": "1", "id": new}).encode()
        await ensure_znodes(zk, [Create(path=paths.CLUSTER_ID, data=data)], zk.transact)
        (znode,) = await zk.read_many([paths.CLUSTER_ID])
    if znode is None:
        raise MalformedZnode(paths.CLUSTER_ID, "it was removed right after its creation")
    return codecs.decode_cluster_id(znode.data)


async def delete_unassigned(zk: ZkSession, broker: BrokerId, directories: LogDirectories) -> None:
    """Delete the logs of partitions that have no replica on this broker now.

    A directory that fails is offline, with an error in the log; nothing is raised. A later start deletes its logs.
    """
    local = {where: directories.find_topic_id(where) for where in directories.logs}
    for where, why in (await find_unassigned(zk, broker, local)).items():
        log.warning("deleting the log of a partition that is no longer assigned here", partition=str(where), why=why)
        with suppress(DiskError):
            directories.delete(where)


async def find_unassigned(
    zk: ZkSession, broker: BrokerId, local: Mapping[TopicPartition, TopicId | None]
) -> dict[TopicPartition, str]:
    """Return the local partitions that have no replica on this broker now, each with the reason.

    A topic with an unreadable znode keeps its logs, because a person may still repair it.
    """
    names = sorted({where.topic for where in local})
    nodes = await zk.read_many([paths.topic(name) for name in names])
    assignments: dict[TopicName, TopicAssignment | None] = {}
    for name, node in zip(names, nodes, strict=True):
        try:
            assignments[name] = None if node is None else codecs.decode_whole_topic(name, node.data)
        except MalformedZnode as error:
            log.error("unreadable assignment, its logs are kept", topic=name, error=str(error))
    return {
        where: why
        for where, topic_id in local.items()
        if where.topic in assignments
        and (why := _why_unassigned(broker, where, topic_id, assignments[where.topic])) is not None
    }


def _why_unassigned(
    broker: BrokerId, where: TopicPartition, topic_id: TopicId | None, assignment: TopicAssignment | None
) -> str | None:
    if assignment is None:
        return "the topic no longer exists"
    if None not in (topic_id, assignment.topic_id) and topic_id != assignment.topic_id:
        return f"it belongs to a deleted topic with id {topic_id}; the current topic has id {assignment.topic_id}"
    partition = assignment.partitions.get(where.partition)
    if partition is None or broker not in partition.replicas:
        return "it is assigned to other brokers"
    return None
