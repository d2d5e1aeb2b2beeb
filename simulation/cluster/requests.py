"""Requests of brokers and clients that take more than a line to write."""

from collections.abc import Iterable, Mapping, Sequence

from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from controller_core.model.ids import (
    BrokerId,
    TopicId,
    TopicPartition,
)
from controller_core.wire.messages import (
    AlterPartitionRequest,
)
from controller_core.wire.messages.alter_partition import AskedIsr, AskedTopic
from simulation.broker_state import SimulatedReplica
from simulation.brokers import SimulatedBroker


def alter_partition(
    broker: SimulatedBroker,
    topic_id: TopicId,
    partition: TopicPartition,
    view: SimulatedReplica,
    isr: Iterable[BrokerId],
    *,
    recovery_state: int = 0,
) -> AlterPartitionRequest:
    """Return a leader's request for one partition, based on its view of it."""
    asked = AskedIsr(partition.partition, view.leader_epoch, tuple(isr), recovery_state, view.partition_epoch)
    return AlterPartitionRequest(
        broker_id=broker.id, broker_epoch=broker.epoch, topics=(AskedTopic(topic_id, [asked]),)
    )


def alter_reassignments(targets: Mapping[TopicPartition, Sequence[int] | None]) -> AlterPartitionReassignmentsRequest:
    """Return a client's request to move partitions. The target None cancels a reassignment."""
    return AlterPartitionReassignmentsRequest(
        topics=tuple(
            ReassignableTopic(
                name=WireTopicName(topic),
                partitions=tuple(
                    ReassignablePartition(
                        partition_index=i32(partition.partition),
                        replicas=None if target is None else tuple(WireBrokerId(number) for number in target),
                    )
                    for partition, target in targets.items()
                    if partition.topic == topic
                ),
            )
            for topic in dict.fromkeys(partition.topic for partition in targets)
        )
    )
