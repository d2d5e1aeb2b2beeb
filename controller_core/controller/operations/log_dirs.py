"""Failures of log directories. The replicas in them fail, but the broker lives on and serves the others.

A broker that loses a directory leaves a notification in ZooKeeper, without the names of the replicas. The controller
sends it LeaderAndIsr for all its replicas, and the broker answers KAFKA_STORAGE_ERROR for those that it cannot serve.
They count as dead until the broker answers otherwise, or starts again (`answers.refused`).
"""

from collections.abc import Collection

import structlog

from controller_core.controller.loop.events import LogDirsFailed
from controller_core.controller.machines import partition_machine, replica_machine
from controller_core.controller.operations.brokers import elect_offline_partitions
from controller_core.controller.term.rights import Reads, Writes
from controller_core.controller.term.term import Term
from controller_core.controller.znodes import subtrees
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.model.transitions import PartitionStatus
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Delete

log = structlog.get_logger()


async def on_log_dirs_failed(term: Term) -> None:
    """Ask the brokers that lost a directory about all their replicas, and remove the notifications."""
    notifications = await _notifications(term)
    nodes = await term.zk.read_many(notifications)
    failed: set[BrokerId] = set()
    for path, node in zip(notifications, nodes, strict=True):
        try:
            failed.update((codecs.decode_log_dir_event(node.data),) if node else ())
        except MalformedZnode as error:
            term.state.unusable.report_removed(path, "unreadable log directory notification removed", error)
    asked = failed & term.state.live
    if failed:
        log.warning("log directories failed", brokers=sorted(failed))
    replica_machine.bring_online(
        term,
        [
            replica
            for replica in term.state.list_replicas_on(asked)
            if not term.state.is_being_deleted(replica.topic_partition.topic)
        ],
    )
    await subtrees.delete_handled(term, [Delete(path=path) for path in notifications])


async def remove_notifications(term: Writes) -> None:
    """Remove the notifications unread. A new controller asks every broker about all its replicas anyway."""
    await subtrees.delete_handled(term, [Delete(path=path) for path in await _notifications(term)])


async def on_replicas_become_online(term: Term, broker: BrokerId, partitions: Collection[TopicPartition]) -> None:
    """Put replicas online that their broker serves again. They may lead."""
    known = term.state.failed_replicas.get(broker, frozenset())
    term.state.set_failed_replicas(broker, known.difference(partitions))
    term.batch.update_metadata(partitions)
    await elect_offline_partitions(term)


async def on_replicas_become_offline(term: Term, broker: BrokerId, partitions: Collection[TopicPartition]) -> None:
    """Run the steps of onBrokerFailure for some replicas of a live broker (Kafka's onReplicasBecomeOffline).

    They are in a failed log directory, or their broker cannot serve them for another reason. A topic that is being
    deleted waits for such a replica until its broker restarts with the directory repaired.
    """
    log.error("replicas cannot be served by their broker", broker=broker, partitions=list(map(str, partitions))[:20])
    known = term.state.failed_replicas.get(broker, frozenset())
    term.state.set_failed_replicas(broker, known.union(partitions))
    # 1. partitions w/o leader -> OfflinePartition
    partition_machine.take_offline(
        term,
        [
            partition
            for partition in term.state.find_led_by(partitions, {broker})
            if term.state.partition_status.get(partition) is PartitionStatus.ONLINE
        ],
    )
    # 2. partitions in OfflinePartition and NewPartition -> OnlinePartition
    await elect_offline_partitions(term)
    # 3. each replica in the failed directory -> OfflineReplica
    replicas = [PartitionReplica(p, broker) for p in partitions if not term.state.is_being_deleted(p.topic)]
    await replica_machine.take_out(term, replicas)
    term.batch.update_metadata(partitions)


async def _notifications(term: Reads) -> list[str]:
    names = await term.watched.read_children(paths.LOG_DIR_EVENT_NOTIFICATION, LogDirsFailed())
    return [paths.log_dir_event(name) for name in names]
