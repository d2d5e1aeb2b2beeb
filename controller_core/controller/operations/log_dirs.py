"""Log directories fail, and the replicas in them with them; the broker lives on and serves the others.

A broker that loses a directory leaves a notification in ZooKeeper which says only that it did. Which replicas are gone
is found out by sending it LeaderAndIsr for all of them: it answers KAFKA_STORAGE_ERROR for those that it cannot serve.
They count as dead until the broker answers otherwise, or starts again.
"""

from collections.abc import Collection, Iterator

import structlog
from kio.schema.errors import ErrorCode

from controller_core.controller.loop.events import BrokerAnswered, LogDirsFailed
from controller_core.controller.machines import partition_machine, replica_machine
from controller_core.controller.operations.brokers import elect_offline_partitions
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId, PartitionReplica, TopicPartition
from controller_core.model.transitions import PartitionStatus
from controller_core.wire.codecs.answers import is_all_well
from controller_core.wire.messages import LeaderAndIsrResponse
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.session import Delete

log = structlog.get_logger()


async def on_log_dirs_failed(term: Term) -> None:
    """Asks the brokers that lost a directory about all their replicas, and removes the notifications."""
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
    replica_machine.to_online(
        term,
        [
            replica
            for replica in term.state.replicas_on(asked)
            if not term.state.is_being_deleted(replica.topic_partition.topic)
        ],
    )
    await term.writer.write({path: [Delete(path=path)] for path in notifications})


async def remove_notifications(term: Term) -> None:
    """A new controller asks every broker about all its replicas anyway; it only watches for what comes."""
    await term.writer.write({path: [Delete(path=path)] for path in await _notifications(term)})


async def on_leader_and_isr_answered(term: Term, answered: BrokerAnswered, response: LeaderAndIsrResponse) -> None:
    """Notes which replicas of a broker are in failed directories, and makes them dead or alive accordingly."""
    broker = term.state.brokers.get(answered.broker)
    if broker is None or broker.epoch != answered.broker_epoch:
        return
    known = term.state.failed_replicas.get(broker.id, frozenset())
    if not known and is_all_well(response):
        return
    failed: list[TopicPartition] = []
    repaired: list[TopicPartition] = []
    for partition, error_code in _answers(term, broker.id, response):
        if error_code is ErrorCode.none and partition in known:
            repaired.append(partition)
        elif error_code is ErrorCode.kafka_storage_error and partition not in known:
            failed.append(partition)
    if repaired:
        term.state.set_failed_replicas(broker.id, known.difference(repaired))
        term.batch.update_metadata(repaired)
        await elect_offline_partitions(term)
    if failed:
        await on_replicas_become_offline(term, broker.id, failed)


def _answers(
    term: Term, broker: BrokerId, response: LeaderAndIsrResponse
) -> Iterator[tuple[TopicPartition, ErrorCode]]:
    """What a broker answered for each of its replicas, without those that are gone or were taken from it meanwhile."""
    for topic in response.topics:
        name = term.state.topic_named(topic.topic_id) if topic.topic_id else None
        if name is None:
            continue
        for answer in topic.partition_errors:
            partition = TopicPartition(name, answer.partition_index)
            if PartitionReplica(partition, broker) in term.state.replica_status:
                yield partition, answer.error_code


async def on_replicas_become_offline(term: Term, broker: BrokerId, partitions: Collection[TopicPartition]) -> None:
    """The steps of onBrokerFailure, for some replicas of a broker that lives on (Kafka's onReplicasBecomeOffline).

    A topic that is being deleted keeps waiting for such a replica until its broker starts with the directory repaired."""
    log.error("replicas in failed log directories", broker=broker, partitions=list(map(str, partitions))[:20])
    known = term.state.failed_replicas.get(broker, frozenset())
    term.state.set_failed_replicas(broker, known.union(partitions))
    # 1. partitions w/o leader -> OfflinePartition
    partition_machine.to_offline(
        term,
        [
            partition
            for partition in term.state.led_by(partitions, {broker})
            if term.state.partition_status.get(partition) is PartitionStatus.ONLINE
        ],
    )
    # 2. partitions in OfflinePartition and NewPartition -> OnlinePartition
    await elect_offline_partitions(term)
    # 3. each replica in the failed directory -> OfflineReplica
    replicas = [PartitionReplica(p, broker) for p in partitions if not term.state.is_being_deleted(p.topic)]
    await replica_machine.take_out(term, replicas)
    term.batch.update_metadata(partitions)


async def _notifications(term: Term) -> list[str]:
    names = await term.watched.children(paths.LOG_DIR_EVENT_NOTIFICATION, LogDirsFailed())
    return [paths.log_dir_event(name) for name in names]
