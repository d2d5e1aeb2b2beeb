"""The seed's `leaderElection`: the first replica that creates the leader's znode wins."""

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import BrokerId, TopicPartition
from controller_core.zk.session import Conflict, NoNode, ZkSession
from replica_broker.v2.settings import V2Settings
from replica_broker.v2.znodes.partitions import (
    NO_VERSION,
    PartitionZnodes,
    ensure_counter,
    read_partition,
    write_leader,
)

log = structlog.get_logger()


def may_lead(znodes: PartitionZnodes, broker: BrokerId) -> bool:
    """Return True if the broker may lead: `(r in AR) && (ISR is empty || r in ISR)`."""
    return broker in znodes.assigned and (not znodes.isr or broker in znodes.isr)


async def leader_election(
    zk: ZkSession, topic_partition: TopicPartition, broker: BrokerId, settings: V2Settings, clock: Clock
) -> bool:
    """Run an election. Return True if the leader must be read again. Raises the errors of ZooKeeper."""
    znodes = await read_partition(zk, topic_partition)
    if znodes.leader is not None:
        return True
    if not may_lead(znodes, broker):
        return False
    if broker != znodes.assigned[0]:
        await clock.sleep_ms(settings.preferred_replica_time_ms)
        znodes = await read_partition(zk, topic_partition)
    try:
        if znodes.epoch_version == NO_VERSION:
            await ensure_counter(zk, topic_partition)
            znodes = await read_partition(zk, topic_partition)
        if znodes.leader is None and may_lead(znodes, broker):
            await write_leader(zk, znodes, broker)
            log.info("elected", partition=str(topic_partition), leader_epoch=znodes.epoch_version + 1)
    except NoNode:
        return False  # the partition was deleted during the election
    except Conflict as conflict:
        log.info("another broker won the election", partition=str(topic_partition), path=conflict.failed.op.path)
    return True
