"""Reads a snapshot of a cluster from one answer to Metadata (`wire.requests.metadata`).

Such an answer has no configurations, no epochs of controllers and partitions, and does not tell a reassignment."""

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponsePartition, MetadataResponseTopic

from controller_core.model.ids import (
    NO_LEADER,
    UNTOLD_BROKER_EPOCH,
    UNTOLD_CONTROLLER_EPOCH,
    UNTOLD_PARTITION_EPOCH,
    UNTOLD_TOPIC_VERSION,
    BrokerId,
    LeaderEpoch,
    PartitionId,
    TopicId,
    TopicName,
)
from controller_core.model.metadata import (
    Broker,
    Endpoint,
    LeaderAndIsr,
    PartitionState,
    ReplicaAssignment,
    TopicAssignment,
)
from controller_core.model.snapshot import Controller, Snapshot, TopicSnapshot


def read_snapshot(metadata: MetadataResponse) -> Snapshot:
    """Return the snapshot in an answer. Topics with an error are left out. The controller is one of the brokers, even if
    it is not really a broker; there is none if the server knows no controller, or one that is not alive."""
    brokers = read_brokers(metadata)
    controller = BrokerId(metadata.controller_id)
    return Snapshot(
        version=1,
        cluster_id=metadata.cluster_id,
        controller=Controller(id=controller) if controller in brokers else None,
        brokers=brokers,
        topics={
            TopicName(topic.name): read_topic(topic)
            for topic in metadata.topics
            if topic.name is not None and topic.error_code is ErrorCode.none
        },
    )


def read_topic(topic: MetadataResponseTopic) -> TopicSnapshot:
    """Return a topic of an answer that names it, without its configuration."""
    assert topic.name is not None, "only answers to requests by id lack names"
    partitions = {
        PartitionId(int(each.partition_index)): each
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    }
    return TopicSnapshot(
        name=TopicName(topic.name),
        assignment=TopicAssignment(
            topic_id=TopicId(topic.topic_id) if topic.topic_id is not None else None,
            partitions={
                number: ReplicaAssignment(replicas=tuple(map(BrokerId, each.replica_nodes)))
                for number, each in partitions.items()
            },
        ),
        version=UNTOLD_TOPIC_VERSION,
        is_config_known=False,
        states={number: read_partition_state(each) for number, each in partitions.items()},
    )


def read_brokers(metadata: MetadataResponse, protocol: str = "") -> dict[BrokerId, Broker]:
    """Return the live brokers, each with the address of the contacted listener. `protocol`: its security protocol, if
    it is known."""
    return {
        BrokerId(each.node_id): Broker(
            id=BrokerId(each.node_id),
            epoch=UNTOLD_BROKER_EPOCH,
            endpoints=(Endpoint(listener="", security_protocol=protocol, host=each.host, port=int(each.port)),),
            rack=each.rack,
        )
        for each in sorted(metadata.brokers, key=lambda each: each.node_id)
    }


def read_partition_state(partition: MetadataResponsePartition) -> PartitionState:
    """Return the leadership of a partition. A broker tells neither its epoch nor that of its controller."""
    leader = BrokerId(int(partition.leader_id))
    return PartitionState(
        leader_and_isr=LeaderAndIsr(
            leader=leader if leader >= 0 else NO_LEADER,
            isr=tuple(map(BrokerId, partition.isr_nodes)),
            leader_epoch=LeaderEpoch(int(partition.leader_epoch)),
        ),
        controller_epoch=UNTOLD_CONTROLLER_EPOCH,
        partition_epoch=UNTOLD_PARTITION_EPOCH,
    )
