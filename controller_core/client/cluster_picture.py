"""Reads a picture of a cluster from an answer to Metadata (`wire.requests.metadata`)."""

from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse

from controller_core.model.draining.cluster_picture import ClusterPicture, PartitionPlace
from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition


def read_picture(metadata: MetadataResponse) -> ClusterPicture:
    """Return the picture in an answer. Topics with an error are left out."""
    brokers = frozenset(BrokerId(broker.node_id) for broker in metadata.brokers)
    controller = BrokerId(metadata.controller_id)
    return ClusterPicture(
        cluster_id=metadata.cluster_id or "",
        controller=controller if controller in brokers else None,
        brokers=brokers,
        partitions=tuple(
            PartitionPlace(
                partition=TopicPartition(TopicName(topic.name), PartitionId(partition.partition_index)),
                leader=BrokerId(partition.leader_id),
                replicas=tuple(BrokerId(replica) for replica in partition.replica_nodes),
                isr=tuple(BrokerId(member) for member in partition.isr_nodes),
            )
            for topic in metadata.topics
            if topic.name is not None and topic.error_code is ErrorCode.none
            for partition in topic.partitions
        ),
    )
