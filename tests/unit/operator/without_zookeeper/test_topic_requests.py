"""The requests to a controller about topics, and the results of its answers."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsResponse
from kio.schema.alter_partition_reassignments.v0.response import (
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from kio.schema.create_partitions.v1 import CreatePartitionsResponse
from kio.schema.create_partitions.v1.response import CreatePartitionsTopicResult
from kio.schema.create_topics.v7 import CreateTopicsResponse
from kio.schema.create_topics.v7.response import CreatableTopicResult
from kio.schema.delete_topics.v6 import DeleteTopicsResponse
from kio.schema.delete_topics.v6.response import DeletableTopicResult
from kio.schema.elect_leaders.v2 import ElectLeadersResponse
from kio.schema.elect_leaders.v2.response import PartitionResult, ReplicaElectionResult
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.metadata.v11.response import MetadataResponseTopic
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.schema.update_features.v1 import UpdateFeaturesResponse
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.static.primitive import i8, i32, i32Timedelta

from controller_core.model.features import FeatureUpdate, UpgradeType
from controller_core.model.ids import TopicId, TopicVersion
from controller_core.model.metadata import TopicAssignment
from controller_operator.kafka.actions import AddPartitions, AlterTopicConfig, CreateTopic, MarkTopicForDeletion
from controller_operator.kafka.requests.cancellations import CancelReassignment, cancel_reassignment
from controller_operator.kafka.requests.elections import ElectUnclean, elect_unclean
from controller_operator.kafka.requests.features import UpdateFeatures, update_features_singly
from controller_operator.kafka.requests.topics import MissTopic, TopicReply, TopicStep, ask_for_topic
from simulation.cluster.names import tp
from simulation.controller_client import SimulatedControllerClient
from tests.unit.operator.clusters import ORDERS, ORDERS_ID, assign

NO_TIME = i32Timedelta.parse(timedelta())
GIVEN = TopicId(UUID(int=99))
ASSIGNMENT = TopicAssignment(
    topic_id=ORDERS_ID,
    partitions={number: assign(replicas) for number, replicas in enumerate(([1, 2], [2, 3], [3, 1]))},  # type: ignore[misc]  # short to write
)
CREATE = CreateTopic(topic=ORDERS, assignment=ASSIGNMENT, config={"retention.ms": "1"})
ADD = AddPartitions(topic=ORDERS, assignment=ASSIGNMENT, version=TopicVersion(0), present=2)
ALTER = AlterTopicConfig(topic=ORDERS, config={}, version=None, changes={"retention.ms": "9", "flush.ms": None})
DELETE = MarkTopicForDeletion(topic=ORDERS, topic_id=ORDERS_ID)


def answers(code: ErrorCode, message: str | None) -> dict[type, Any]:
    """Return a controller's answers to each of the requests, by the step."""
    name = WireTopicName(ORDERS)
    said: dict[str, Any] = {"error_code": code, "error_message": message}
    return {
        CreateTopic: CreateTopicsResponse(
            throttle_time=NO_TIME,
            topics=(
                CreatableTopicResult(
                    name=name, topic_id=GIVEN if code is ErrorCode.none else None, configs=None, **said
                ),
            ),
        ),
        AddPartitions: CreatePartitionsResponse(
            throttle_time=NO_TIME, results=(CreatePartitionsTopicResult(name=name, **said),)
        ),
        AlterTopicConfig: IncrementalAlterConfigsResponse(
            throttle_time=NO_TIME,
            responses=(AlterConfigsResourceResponse(resource_type=i8(2), resource_name=ORDERS, **said),),
        ),
        MarkTopicForDeletion: DeleteTopicsResponse(
            throttle_time=NO_TIME, responses=(DeletableTopicResult(name=name, topic_id=ORDERS_ID, **said),)
        ),
    }


def client_that(answer: Callable[[Any], Any]) -> SimulatedControllerClient:
    async def answer_once(request: Any) -> Any:
        return answer(request)

    return SimulatedControllerClient(lambda: answer_once)


async def ask(step: TopicStep, code: ErrorCode = ErrorCode.none, message: str | None = None) -> tuple[TopicReply, Any]:
    client = client_that(lambda _request: answers(code, message)[type(step)])
    reply = await ask_for_topic(step, client)
    (request,) = client.requests
    return reply, request


async def test_a_topic_is_asked_for_with_its_replicas_and_has_the_id_that_it_is_given() -> None:
    reply, request = await ask(CREATE)
    (topic,) = request.topics
    assert [(each.partition_index, each.broker_ids) for each in topic.assignments] == [
        (0, (1, 2)),
        (1, (2, 3)),
        (2, (3, 1)),
    ]
    assert [(each.name, each.value) for each in topic.configs] == [("retention.ms", "1")]
    assert (reply.is_done, reply.topic_id) == (True, GIVEN)


async def test_only_new_partitions_are_said_where_they_go() -> None:
    reply, request = await ask(ADD)
    (topic,) = request.topics
    assert (topic.count, [each.broker_ids for each in topic.assignments]) == (3, [(3, 1)])
    assert reply.is_done


async def test_a_configuration_is_changed_key_by_key() -> None:
    reply, request = await ask(ALTER)
    (resource,) = request.resources
    assert [(each.name, each.config_operation, each.value) for each in resource.configs] == [
        ("flush.ms", 1, None),
        ("retention.ms", 0, "9"),
    ]
    assert reply.is_done


async def test_a_topic_is_deleted_by_its_id() -> None:
    reply, request = await ask(DELETE)
    assert [(each.name, each.topic_id) for each in request.topics] == [(None, ORDERS_ID)]
    assert reply.is_done


def make_metadata(code: ErrorCode) -> MetadataResponse:
    """Return a broker's answer about one topic."""
    topic = MetadataResponseTopic(error_code=code, name=WireTopicName(ORDERS), topic_id=None, partitions=())
    return MetadataResponse(throttle_time=NO_TIME, brokers=(), controller_id=WireBrokerId(1), topics=(topic,))


@pytest.mark.parametrize(
    ("code", "is_done", "is_refused"),
    [
        (ErrorCode.unknown_topic_or_partition, True, False),
        (ErrorCode.topic_authorization_failed, False, True),
        (ErrorCode.none, False, False),
        (ErrorCode.leader_not_available, False, False),
    ],
)
async def test_a_topic_is_gone_where_a_broker_says_so_and_not_where_it_may_not_be_told(
    code: ErrorCode, is_done: bool, is_refused: bool
) -> None:
    client = client_that(lambda _request: make_metadata(code))
    reply = await ask_for_topic(MissTopic(topic=ORDERS), client)
    request: Any = client.requests[0]
    assert ([each.name for each in request.topics], request.allow_auto_topic_creation) == ([ORDERS], False)
    assert (reply.is_done, reply.refused is not None) == (is_done, is_refused)
    assert "Describe the topic" in (reply.refused or "Describe the topic")


@pytest.mark.parametrize("step", [CREATE, ADD, ALTER, DELETE])
async def test_what_is_refused_says_why(step: TopicStep) -> None:
    reply, _ = await ask(step, ErrorCode.policy_violation, "too many")
    assert (reply.is_done, reply.refused, reply.trouble, reply.topic_id) == (False, "too many", None, None)
    reply, _ = await ask(step, ErrorCode.policy_violation)
    assert reply.refused == "policy_violation"


@pytest.mark.parametrize(
    ("step", "right"), [(CREATE, "Create"), (ADD, "Alter"), (ALTER, "AlterConfigs"), (DELETE, "Delete")]
)
async def test_who_may_not_is_told_which_right_is_missing(step: TopicStep, right: str) -> None:
    reply, _ = await ask(step, ErrorCode.topic_authorization_failed, "Authorization failed.")
    assert reply.refused is not None
    assert f"lacks the right to {right} " in reply.refused


MOMENTARY = [
    ErrorCode.request_timed_out,
    ErrorCode.unknown_server_error,
    ErrorCode.broker_not_available,
    ErrorCode.throttling_quota_exceeded,
    ErrorCode.coordinator_not_available,
]


@pytest.mark.parametrize("code", MOMENTARY)
class TestWhatNobodyHasJudgedIsNoRefusal:
    """The request may have been carried out, so the operator looks at the cluster, and gives nothing up for good."""

    @pytest.mark.parametrize("step", [CREATE, ADD, ALTER, DELETE])
    async def test_of_a_topic(self, step: TopicStep, code: ErrorCode) -> None:
        reply, _ = await ask(step, code, "busy")
        assert (reply.is_done, reply.refused, reply.trouble) == (False, None, "busy")

    @pytest.mark.parametrize("is_of_the_whole", [True, False])
    async def test_of_moves_that_are_taken_back(self, code: ErrorCode, is_of_the_whole: bool) -> None:
        partition = tp(ORDERS, 0)
        client = client_that(lambda _request: reassignment_answer(code, is_of_the_whole=is_of_the_whole))
        reply = await cancel_reassignment(CancelReassignment(partitions=(partition,)), client)
        assert (reply.refused, reply.trouble) == ((), "busy")

    @pytest.mark.parametrize("is_of_the_whole", [True, False])
    async def test_of_elections(self, code: ErrorCode, is_of_the_whole: bool) -> None:
        client = client_that(lambda _request: election_answer(code, is_of_the_whole=is_of_the_whole))
        reply = await elect_unclean(ElectUnclean(partitions=(tp(ORDERS, 0),)), client)
        assert (reply.refused, bool(reply.trouble)) == ((), True)

    @pytest.mark.parametrize("is_of_the_whole", [True, False])
    async def test_of_features(self, code: ErrorCode, is_of_the_whole: bool) -> None:
        client = client_that(lambda _request: feature_answer("f", code, is_of_the_whole=is_of_the_whole))
        update = FeatureUpdate(feature="f", max_version_level=2, upgrade_type=UpgradeType.UPGRADE)
        reply = await update_features_singly(UpdateFeatures(updates=(update,)), client)
        assert (reply.refused, reply.trouble) == ((), "busy")


def reassignment_answer(code: ErrorCode, *, is_of_the_whole: bool) -> AlterPartitionReassignmentsResponse:
    said: dict[str, Any] = {"error_code": code, "error_message": "busy"}
    none: dict[str, Any] = {"error_code": ErrorCode.none, "error_message": None}
    partition = ReassignablePartitionResponse(partition_index=i32(0), **said)
    topic = ReassignableTopicResponse(name=WireTopicName(ORDERS), partitions=(partition,))
    return AlterPartitionReassignmentsResponse(
        throttle_time=NO_TIME, responses=() if is_of_the_whole else (topic,), **(said if is_of_the_whole else none)
    )


def election_answer(code: ErrorCode, *, is_of_the_whole: bool) -> ElectLeadersResponse:
    partition = PartitionResult(partition_id=i32(0), error_code=code, error_message=None)
    topic = ReplicaElectionResult(topic=WireTopicName(ORDERS), partition_result=(partition,))
    return ElectLeadersResponse(
        throttle_time=NO_TIME,
        error_code=code if is_of_the_whole else ErrorCode.none,
        replica_election_results=() if is_of_the_whole else (topic,),
    )


def feature_answer(
    feature: str, code: ErrorCode, message: str = "busy", *, is_of_the_whole: bool = False
) -> UpdateFeaturesResponse:
    result = UpdatableFeatureResult(feature=feature, error_code=code, error_message=message)
    return UpdateFeaturesResponse(
        throttle_time=NO_TIME,
        error_code=code if is_of_the_whole else ErrorCode.none,
        error_message=message if is_of_the_whole else None,
        results=() if is_of_the_whole else (result,),
    )


async def test_where_nobody_is_the_controller_that_is_trouble_and_no_refusal() -> None:
    reply = await ask_for_topic(CREATE, SimulatedControllerClient(lambda: None))
    assert (reply.refused, bool(reply.trouble)) == (None, True)


async def test_features_are_asked_for_one_by_one_so_that_a_refused_one_holds_up_no_other() -> None:
    def answer(request: Any) -> Any:
        (update,) = request.feature_updates
        code = ErrorCode.invalid_update_version if update.feature == "bad" else ErrorCode.none
        return feature_answer(update.feature, code, f"about {update.feature}")

    client = client_that(answer)
    updates = tuple(
        FeatureUpdate(feature=name, max_version_level=2, upgrade_type=UpgradeType.UPGRADE)
        for name in ("good", "bad", "metadata.version")
    )
    reply = await update_features_singly(UpdateFeatures(updates=updates, validates_only=True), client)
    asked: list[Any] = client.requests
    assert [each.feature_updates[0].feature for each in asked] == ["metadata.version", "good", "bad"]
    assert all(each.validate_only for each in asked)
    assert (reply.refused, reply.step.updates) == ((("bad", "about bad"),), updates)
