"""Requests that need rights, and the parts of their answers that both controllers must have in common.

None of them changes anything: they are validated only, name missing topics, or have the epoch of an earlier broker. If
a node answers about itself, or with a broker's own state, only the refusal is compared.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.alter_partition_reassignments.v0.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.alter_replica_log_dirs.v2.request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kio.schema.alter_user_scram_credentials.v0.request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
)
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_cluster.v1.request import DescribeClusterRequest
from kio.schema.describe_configs.v4.request import DescribeConfigsRequest, DescribeConfigsResource
from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest, TopicPartitions
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource, IncrementalAlterConfigsRequest
from kio.schema.list_groups.v4.request import ListGroupsRequest
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.metadata.v10.request import MetadataRequest as MetadataRequest10
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.types import BrokerId, TopicName
from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16, i32, i32Timedelta, i64

THERE: Final = ("alpha", "alpine", "beta")
MISSING: Final = ("alp", "nope")
BROKER: Final = 1
_SOON: Final = i32Timedelta.parse(timedelta(seconds=10))
_NODE: Final = i8(4)
_REFUSALS: Final = {
    ErrorCode.topic_authorization_failed,
    ErrorCode.cluster_authorization_failed,
    ErrorCode.group_authorization_failed,
}


@dataclass(frozen=True)
class Question:
    """A request, and the function that returns the compared part of its answer."""

    request: Any
    compared: Callable[[Any], Any]


def questions(node: int, ids: dict[str, UUID], deletable: Iterable[str]) -> dict[str, Question]:
    """Return the requests to the node with this id, in a cluster whose topics have these ids.

    `deletable`: the topics whose deletion is requested.
    """
    return {
        **_make_topic_questions(ids, deletable),
        **_make_cluster_questions(),
        **_make_node_questions(node),
        **_make_broker_questions(),
        **_make_metadata_questions(ids),
    }


def _make_topic_questions(ids: dict[str, UUID], deletable: Iterable[str]) -> dict[str, Question]:
    new = (*THERE[:1], *MISSING, "twice", "twice", "bad name")
    created = tuple(
        CreatableTopic(
            name=TopicName(name), num_partitions=i32(2), replication_factor=i16(1), assignments=(), configs=()
        )
        for name in new
    )
    grown = tuple(
        CreatePartitionsTopic(name=TopicName(name), count=i32(3), assignments=None)
        for name in (*THERE, *MISSING, MISSING[0])
    )
    deleted = (
        *(DeleteTopicState(name=TopicName(name), topic_id=None) for name in (*MISSING, *deletable)),
        *(DeleteTopicState(name=None, topic_id=ids[name]) for name in deletable),
        DeleteTopicState(name=None, topic_id=UUID(int=77)),
    )
    return {
        "CreateTopics": Question(
            CreateTopicsRequest(topics=created, timeout=_SOON, validate_only=True),
            lambda answer: [
                (each.name, each.error_code, each.topic_config_error_code, each.num_partitions, bool(each.configs))
                for each in answer.topics
            ],
        ),
        "CreatePartitions": Question(
            CreatePartitionsRequest(topics=grown, timeout=_SOON, validate_only=True),
            lambda answer: sorted((each.name, each.error_code) for each in answer.results),
        ),
        "DeleteTopics": Question(
            DeleteTopicsRequest(topics=deleted, timeout=_SOON),
            lambda answer: sorted(
                (each.name or "", _name_of(ids, each.topic_id), each.error_code) for each in answer.responses
            ),
        ),
        "DescribeProducers": Question(
            DescribeProducersRequest(
                topics=tuple(TopicRequest(name=TopicName(name), partition_indexes=(i32(0),)) for name in THERE)
            ),
            lambda answer: sorted(
                (topic.name, each.error_code in _REFUSALS) for topic in answer.topics for each in topic.partitions
            ),
        ),
    }


def _make_cluster_questions() -> dict[str, Question]:
    topic = TopicName(THERE[0])
    return {
        "ElectLeaders": Question(
            ElectLeadersRequest(
                election_type=i8(0),
                topic_partitions=(TopicPartitions(topic=topic, partitions=(i32(0),)),),
                timeout=_SOON,
            ),
            lambda answer: (
                answer.error_code,
                [each.error_code for found in answer.replica_election_results for each in found.partition_result],
            ),
        ),
        "AlterPartitionReassignments": Question(
            AlterPartitionReassignmentsRequest(
                timeout=_SOON,
                topics=(
                    ReassignableTopic(
                        name=topic, partitions=(ReassignablePartition(partition_index=i32(0), replicas=None),)
                    ),
                ),
            ),
            lambda answer: (
                answer.error_code,
                [each.error_code for found in answer.responses for each in found.partitions],
            ),
        ),
        "ListPartitionReassignments": Question(
            ListPartitionReassignmentsRequest(timeout=_SOON, topics=None), lambda answer: answer.error_code
        ),
        "AlterUserScramCredentials": Question(
            AlterUserScramCredentialsRequest(
                deletions=(ScramCredentialDeletion(name="nobody", mechanism=i8(1)),), upsertions=()
            ),
            lambda answer: [each.error_code for each in answer.results],
        ),
        "UpdateFeatures": Question(
            UpdateFeaturesRequest(
                timeout=_SOON,
                feature_updates=(FeatureUpdateKey(feature="unheard.of", max_version_level=i16(1), upgrade_type=i8(1)),),
                validate_only=True,
            ),
            lambda answer: (answer.error_code, [each.error_code for each in answer.results]),
        ),
    }


def _make_node_questions(node: int) -> dict[str, Question]:
    name = str(node)
    return {
        "DescribeConfigs": Question(
            DescribeConfigsRequest(
                resources=(DescribeConfigsResource(resource_type=_NODE, resource_name=name, configuration_keys=()),),
                include_synonyms=False,
                include_documentation=False,
            ),
            lambda answer: [each.error_code for each in answer.results],
        ),
        "IncrementalAlterConfigs": Question(
            IncrementalAlterConfigsRequest(
                resources=(AlterConfigsResource(resource_type=_NODE, resource_name=name, configs=()),),
                validate_only=True,
            ),
            lambda answer: [each.error_code for each in answer.responses],
        ),
        "DescribeLogDirs": Question(DescribeLogDirsRequest(topics=None), lambda answer: answer.error_code),
        "AlterReplicaLogDirs": Question(
            AlterReplicaLogDirsRequest(
                dirs=(
                    AlterReplicaLogDir(
                        path="/nowhere",
                        topics=(AlterReplicaLogDirTopic(name=TopicName(THERE[0]), partitions=(i32(0),)),),
                    ),
                )
            ),
            lambda answer: [each.error_code in _REFUSALS for found in answer.results for each in found.partitions],
        ),
        "ListGroups": Question(ListGroupsRequest(states_filter=()), lambda answer: answer.error_code),
    }


def _make_broker_questions() -> dict[str, Question]:
    """Return requests with an earlier epoch of the broker."""
    return {
        "AllocateProducerIds": Question(
            AllocateProducerIdsRequest(broker_id=BrokerId(BROKER), broker_epoch=i64(0)),
            lambda answer: answer.error_code,
        ),
    }


def _make_metadata_questions(ids: dict[str, UUID]) -> dict[str, Question]:
    def topics(answer: Any) -> list[Any]:
        return sorted(
            (each.name or "", _name_of(ids, each.topic_id), each.error_code, each.topic_authorized_operations)
            for each in answer.topics
        )

    def make_request(**wanted: Any) -> MetadataRequest:
        return MetadataRequest(allow_auto_topic_creation=False, include_topic_authorized_operations=True, **wanted)

    by_name = tuple(MetadataRequestTopic(topic_id=None, name=TopicName(name)) for name in (*THERE, *MISSING))
    by_id = tuple(MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in (*ids.values(), UUID(int=77)))
    return {
        "Metadata of names": Question(make_request(topics=by_name), topics),
        "Metadata of ids": Question(make_request(topics=by_id), topics),
        "Metadata of all": Question(make_request(topics=None), topics),
        "Metadata of old": Question(
            MetadataRequest10(
                topics=None,
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=True,
                include_topic_authorized_operations=False,
            ),
            lambda answer: (answer.cluster_authorized_operations, topics(answer)),
        ),
        "DescribeCluster": Question(
            DescribeClusterRequest(include_cluster_authorized_operations=True),
            lambda answer: (answer.error_code, answer.cluster_authorized_operations),
        ),
    }


def _name_of(ids: dict[str, UUID], topic_id: UUID | None) -> str:
    """Return the name of the topic with an id, because ids differ between clusters."""
    return next((name for name, known in ids.items() if known == topic_id), str(topic_id))
