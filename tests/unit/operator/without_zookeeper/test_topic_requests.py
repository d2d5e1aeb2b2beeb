"""What is asked of a controller about topics, and what its answer comes to."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from kio.schema.create_partitions.v1 import CreatePartitionsResponse
from kio.schema.create_partitions.v1.response import CreatePartitionsTopicResult
from kio.schema.create_topics.v7 import CreateTopicsResponse
from kio.schema.create_topics.v7.response import CreatableTopicResult
from kio.schema.delete_topics.v6 import DeleteTopicsResponse
from kio.schema.delete_topics.v6.response import DeletableTopicResult
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.response import AlterConfigsResourceResponse
from kio.schema.types import TopicName as WireTopicName
from kio.schema.update_features.v1 import UpdateFeaturesResponse
from kio.schema.update_features.v1.response import UpdatableFeatureResult
from kio.static.primitive import i8, i32Timedelta

from controller_core.model.features import FeatureUpdate, UpgradeType
from controller_core.model.ids import TopicId
from controller_core.model.metadata import TopicAssignment
from controller_core.zk.session import ZkVersion
from controller_operator.kafka.actions import AddPartitions, AlterTopicConfig, CreateTopic, MarkTopicForDeletion
from controller_operator.kafka.requests.features import UpdateFeatures, update_features_singly
from controller_operator.kafka.requests.topics import TopicReply, TopicStep, ask_for_topic
from simulation.controller_client import SimulatedControllerClient
from tests.unit.operator.clusters import ORDERS, ORDERS_ID, assigned

NO_TIME = i32Timedelta.parse(timedelta())
GIVEN = TopicId(UUID(int=99))
ASSIGNMENT = TopicAssignment(
    topic_id=ORDERS_ID,
    partitions={number: assigned(replicas) for number, replicas in enumerate(([1, 2], [2, 3], [3, 1]))},  # type: ignore[misc]  # short to write
)
CREATE = CreateTopic(topic=ORDERS, assignment=ASSIGNMENT, config={"retention.ms": "1"})
ADD = AddPartitions(topic=ORDERS, assignment=ASSIGNMENT, version=ZkVersion(0), present=2)
ALTER = AlterTopicConfig(topic=ORDERS, config={}, version=None, changes={"retention.ms": "9", "flush.ms": None})
DELETE = MarkTopicForDeletion(topic=ORDERS, topic_id=ORDERS_ID)


def answers(code: ErrorCode, message: str | None) -> dict[type, Any]:
    """What a controller answers to each of the requests, by the step."""
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
    async def answered(request: Any) -> Any:
        return answer(request)

    return SimulatedControllerClient(lambda: answered)


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


@pytest.mark.parametrize("step", [CREATE, ADD, ALTER, DELETE])
async def test_what_is_refused_says_why(step: TopicStep) -> None:
    reply, _ = await ask(step, ErrorCode.policy_violation, "too many")
    assert (reply.is_done, reply.refused, reply.trouble, reply.topic_id) == (False, "too many", None, None)
    reply, _ = await ask(step, ErrorCode.policy_violation)
    assert reply.refused == "policy_violation"


@pytest.mark.parametrize("step", [CREATE, ADD, ALTER, DELETE])
async def test_what_did_not_end_in_time_may_have_been_done(step: TopicStep) -> None:
    reply, _ = await ask(step, ErrorCode.request_timed_out, "busy")
    assert (reply.is_done, reply.refused, reply.trouble) == (False, None, "busy")


async def test_where_nobody_is_the_controller_that_is_trouble_and_no_refusal() -> None:
    reply = await ask_for_topic(CREATE, SimulatedControllerClient(lambda: None))
    assert (reply.refused, bool(reply.trouble)) == (None, True)


async def test_features_are_asked_for_one_by_one_so_that_a_refused_one_holds_up_no_other() -> None:
    def answer(request: Any) -> Any:
        (update,) = request.feature_updates
        code = ErrorCode.invalid_update_version if update.feature == "bad" else ErrorCode.none
        result = UpdatableFeatureResult(
            feature=update.feature, error_code=code, error_message=f"about {update.feature}"
        )
        return UpdateFeaturesResponse(
            throttle_time=NO_TIME, error_code=ErrorCode.none, error_message=None, results=(result,)
        )

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
