"""CreateTopics, CreatePartitions and DeleteTopics (KIP-4).

Since version 6 of CreateTopics and version 5 of DeleteTopics, a controller may refuse requests beyond a quota (KIP-599).
"""

from collections.abc import Mapping, Sequence
from typing import Final

from kio.schema.create_partitions.v1 import CreatePartitionsRequest
from kio.schema.create_partitions.v1.request import CreatePartitionsAssignment, CreatePartitionsTopic
from kio.schema.create_topics.v5 import CreateTopicsRequest as CreateTopicsRequest5
from kio.schema.create_topics.v5.request import CreatableReplicaAssignment as Assignment5
from kio.schema.create_topics.v5.request import CreatableTopic as CreatableTopic5
from kio.schema.create_topics.v5.request import CreatableTopicConfig as Config5
from kio.schema.create_topics.v7 import CreateTopicsRequest as CreateTopicsRequest7
from kio.schema.create_topics.v7.request import CreatableReplicaAssignment as Assignment7
from kio.schema.create_topics.v7.request import CreatableTopic as CreatableTopic7
from kio.schema.create_topics.v7.request import CreatableTopicConfig as Config7
from kio.schema.delete_topics.v5 import DeleteTopicsRequest as DeleteTopicsRequest5
from kio.schema.delete_topics.v6 import DeleteTopicsRequest as DeleteTopicsRequest6
from kio.schema.delete_topics.v6.request import DeleteTopicState
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i16, i32, i32Timedelta

from controller_core.model.ids import BrokerId, PartitionId, TopicId

_NOT_GIVEN: Final = -1
"""A count that follows from the assignment, or otherwise from the cluster's default."""


def make_create_topic_request(
    topic: str,
    configs: Mapping[str, str],
    timeout: i32Timedelta,
    *,
    partitions: int | None = None,
    replication_factor: int | None = None,
    assignment: Mapping[PartitionId, Sequence[BrokerId]] | None = None,
    validate_only: bool = False,
) -> CreateTopicsRequest5:
    """Return a request for one topic by counts or by an assignment. Without either, the cluster's defaults apply.

    This version ignores quotas."""
    asked = CreatableTopic5(
        name=WireTopicName(topic),
        num_partitions=i32(_NOT_GIVEN if partitions is None else partitions),
        replication_factor=i16(_NOT_GIVEN if replication_factor is None else replication_factor),
        assignments=tuple(
            Assignment5(partition_index=i32(number), broker_ids=_write_brokers(replicas))
            for number, replicas in sorted((assignment or {}).items())
        ),
        configs=tuple(Config5(name=name, value=value) for name, value in configs.items()),
    )
    return CreateTopicsRequest5(topics=(asked,), timeout=timeout, validate_only=validate_only)


def make_create_assigned_topic_request(
    topic: str, assignment: Mapping[PartitionId, Sequence[BrokerId]], configs: Mapping[str, str], timeout: i32Timedelta
) -> CreateTopicsRequest7:
    """Return a request for one topic by an assignment. The answer has the id of the topic (KIP-516)."""
    asked = CreatableTopic7(
        name=WireTopicName(topic),
        num_partitions=i32(_NOT_GIVEN),
        replication_factor=i16(_NOT_GIVEN),
        assignments=tuple(
            Assignment7(partition_index=i32(number), broker_ids=_write_brokers(replicas))
            for number, replicas in sorted(assignment.items())
        ),
        configs=tuple(Config7(name=name, value=value) for name, value in configs.items()),
    )
    return CreateTopicsRequest7(topics=(asked,), timeout=timeout, validate_only=False)


def make_create_partitions_request(
    topic: str,
    count: int,
    added: Sequence[Sequence[BrokerId]] | None,
    timeout: i32Timedelta,
    *,
    validate_only: bool = False,
) -> CreatePartitionsRequest:
    """Return a request that gives a topic `count` partitions. `added` has the replicas of each new one; None lets the
    controller choose them."""
    assignments = None
    if added is not None:
        assignments = tuple(CreatePartitionsAssignment(broker_ids=_write_brokers(replicas)) for replicas in added)
    asked = CreatePartitionsTopic(name=WireTopicName(topic), count=i32(count), assignments=assignments)
    return CreatePartitionsRequest(topics=(asked,), timeout=timeout, validate_only=validate_only)


def make_delete_topic_by_name_request(topic: str, timeout: i32Timedelta) -> DeleteTopicsRequest5:
    """Return a request that deletes a topic by its name, in the newest version without ids."""
    return DeleteTopicsRequest5(topic_names=(WireTopicName(topic),), timeout=timeout)


def make_delete_topic_by_id_request(topic_id: TopicId, timeout: i32Timedelta) -> DeleteTopicsRequest6:
    """Return a request that deletes a topic by its id. A new topic of the same name is safe from it (KIP-516)."""
    return DeleteTopicsRequest6(topics=(DeleteTopicState(name=None, topic_id=topic_id),), timeout=timeout)


def _write_brokers(brokers: Sequence[BrokerId]) -> tuple[WireBrokerId, ...]:
    return tuple(map(WireBrokerId, brokers))
