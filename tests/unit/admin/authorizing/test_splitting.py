"""Requests of several parts: refused parts do not reach the controller, and each part has its own answer, in order."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterConfigsResource as ReplacingResource
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest
from kio.schema.create_topics.v7.response import CreatableTopicConfigs, CreatableTopicResult, CreateTopicsResponse
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource, IncrementalAlterConfigsRequest
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i8, i16, i32, i32Timedelta

from controller_core.admin.authorizing import split_nodes, split_topics
from controller_core.admin.cluster import as_broker, own_configs
from controller_core.admin.topics import create_partitions, delete_topics
from controller_core.model.authorization.acls import (
    THE_CLUSTER,
    Operation,
    Resource,
    ResourceType,
    make_topic_resource,
)
from controller_core.model.ids import TopicId, TopicName
from controller_core.wire.messages import NO_THROTTLE

NAMES = ("a", "b", "c", "d")
IDS = {TopicId(UUID(int=number)): TopicName(name) for number, name in enumerate(NAMES, 1)}
AT_ONCE = i32Timedelta.parse(timedelta(seconds=1))
REFUSED, DONE = ErrorCode.topic_authorization_failed, ErrorCode.none


@dataclass(frozen=True)
class Given:
    """Rights as a list."""

    allowed: frozenset[tuple[Operation, Resource]]

    def may(self, operation: Operation, resource: Resource, *, is_wanted: bool = True) -> bool:
        return (operation, resource) in self.allowed

    def may_on_any(self, operation: Operation, kind: ResourceType) -> bool:
        return any(one is operation and resource.type is kind for one, resource in self.allowed)


def rights(*operations: Operation) -> st.SearchStrategy[Given]:
    one = st.tuples(st.sampled_from(operations), st.sampled_from([*map(make_topic_resource, NAMES), THE_CLUSTER]))
    return st.frozensets(one).map(Given)


names = st.lists(st.sampled_from(NAMES), max_size=6)


class Controller:
    """Does all that it is asked for, and remembers that."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        self.asked: list[Any] = []
        self._answer = answer

    async def __call__(self, request: Any) -> Any:
        self.asked.append(request)
        return self._answer(request)


def make_obedient(refusal: Callable[[Any, ErrorCode], Any]) -> Controller:
    return Controller(lambda request: refusal(request, DONE))


def create_topics(request: CreateTopicsRequest) -> CreateTopicsResponse:
    named = Counter(topic.name for topic in request.topics)
    config = CreatableTopicConfigs(name="k", value="v", read_only=False, config_source=i8(5), is_sensitive=False)
    result = CreatableTopicResult(
        name=WireTopicName(""), topic_id=None, error_code=DONE, error_message=None, num_partitions=i32(1),
        replication_factor=i16(1), configs=(config,),
    )  # fmt: skip
    return CreateTopicsResponse(
        throttle_time=NO_THROTTLE,
        topics=tuple(
            replace(result, name=topic.name, error_code=DONE if named[topic.name] == 1 else ErrorCode.invalid_request)
            for topic in request.topics
        ),
    )


@given(asked=names, allowed=rights(Operation.CREATE, Operation.DESCRIBE_CONFIGS))
async def test_topics_are_created_by_who_may_create_them_or_any(asked: list[str], allowed: Given) -> None:
    topics = tuple(
        CreatableTopic(
            name=WireTopicName(name), num_partitions=i32(1), replication_factor=i16(1), assignments=(), configs=()
        )
        for name in asked
    )
    controller = Controller(create_topics)
    request = CreateTopicsRequest(topics=topics, timeout=AT_ONCE, validate_only=False)
    response = await (await split_topics.create_topics(request, allowed)).answer_allowed(controller)
    assert [result.name for result in response.topics] == asked
    may_create_all = allowed.may(Operation.CREATE, THE_CLUSTER)
    for result in response.topics:
        may_create = may_create_all or allowed.may(Operation.CREATE, make_topic_resource(result.name))
        is_twice = asked.count(result.name) > 1
        assert result.error_code is (ErrorCode.invalid_request if is_twice else DONE if may_create else REFUSED)
        if not allowed.may(Operation.DESCRIBE_CONFIGS, make_topic_resource(result.name)):
            assert result.topic_config_error_code == REFUSED.value
            assert (result.num_partitions, result.configs) == (-1, ())
        elif may_create and not is_twice:
            assert (result.topic_config_error_code, result.num_partitions, len(result.configs or ())) == (0, 1, 1)
    passed = {topic.name for request in controller.asked for topic in request.topics}
    assert all(
        may_create_all or asked.count(n) > 1 or allowed.may(Operation.CREATE, make_topic_resource(n)) for n in passed
    )


@given(asked=names, by_id=st.booleans(), allowed=rights(Operation.DESCRIBE, Operation.DELETE))
async def test_topics_are_deleted_by_who_may_and_names_stay_secret(
    asked: list[str], by_id: bool, allowed: Given
) -> None:
    ids = {name: topic_id for topic_id, name in IDS.items()}
    topics = tuple(
        DeleteTopicState(name=None, topic_id=ids[TopicName(name)])
        if by_id
        else DeleteTopicState(name=WireTopicName(name), topic_id=None)
        for name in asked
    )
    controller = make_obedient(delete_topics.refusal)
    request = DeleteTopicsRequest(topics=topics, timeout=AT_ONCE)
    response = await (await split_topics.delete_topics(request, allowed, IDS.get)).answer_allowed(controller)
    assert [result.topic_id for result in response.responses] == [topic.topic_id for topic in topics]
    for name, result in zip(asked, response.responses, strict=True):
        may_know = allowed.may(Operation.DESCRIBE, make_topic_resource(name))
        may_delete = allowed.may(Operation.DELETE, make_topic_resource(name)) and (may_know or not by_id)
        assert result.error_code is (DONE if may_delete else REFUSED)
        if by_id and not may_know:
            assert result.name is None


async def test_an_id_that_no_topic_has_yet_is_not_passed_on_because_nobody_is_authorized_for_it() -> None:
    state = DeleteTopicState(name=None, topic_id=UUID(int=99))
    request = DeleteTopicsRequest(topics=(state,), timeout=AT_ONCE)
    split = await split_topics.delete_topics(request, Given(frozenset()), IDS.get)
    assert split.allowed is None
    assert split.merge(None) == delete_topics.refusal(request, ErrorCode.unknown_topic_id)


async def test_a_request_by_name_and_id_is_refused_by_the_controller_as_a_whole() -> None:
    both = DeleteTopicState(name=WireTopicName("a"), topic_id=UUID(int=1))
    other = DeleteTopicState(name=WireTopicName("b"), topic_id=None)
    request = DeleteTopicsRequest(topics=(both, other), timeout=AT_ONCE)
    split = await split_topics.delete_topics(request, Given(frozenset()), IDS.get)
    assert split.allowed == request
    refused = delete_topics.refusal(request, ErrorCode.invalid_request)
    assert split.merge(refused) == refused


@given(asked=names, allowed=rights(Operation.ALTER))
async def test_topics_grow_by_who_may_alter_them(asked: list[str], allowed: Given) -> None:
    topics = tuple(CreatePartitionsTopic(name=WireTopicName(name), count=i32(2), assignments=()) for name in asked)
    controller = make_obedient(create_partitions.refusal)
    request = CreatePartitionsRequest(topics=topics, timeout=AT_ONCE, validate_only=False)
    response = await (await split_topics.create_partitions(request, allowed)).answer_allowed(controller)
    assert [result.name for result in response.results] == list(dict.fromkeys(asked)), "one for each name"
    for result in response.results:
        may_alter = asked.count(result.name) > 1 or allowed.may(Operation.ALTER, make_topic_resource(result.name))
        assert result.error_code is (DONE if may_alter else REFUSED)


@given(
    asked=st.lists(st.sampled_from([(2, "a"), (2, "b"), (4, "9")]), max_size=4), allowed=rights(Operation.ALTER_CONFIGS)
)
async def test_configurations_are_altered_by_a_right_on_the_topic_or_on_the_cluster(
    asked: list[tuple[int, str]], allowed: Given
) -> None:
    resources = tuple(
        AlterConfigsResource(resource_type=i8(kind), resource_name=name, configs=()) for kind, name in asked
    )
    request = IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
    older = AlterConfigsRequest(
        resources=tuple(
            ReplacingResource(resource_type=i8(kind), resource_name=name, configs=()) for kind, name in asked
        ),
        validate_only=False,
    )
    answers: list[Any] = [
        await (await split_nodes.alter_configs(request, allowed)).answer_allowed(make_obedient(own_configs.refusal)),
        await (await split_nodes.replace_configs(older, allowed)).answer_allowed(
            make_obedient(own_configs.REPLACE.refuse)
        ),
    ]
    for response in answers:
        assert [(result.resource_type, result.resource_name) for result in response.responses] == asked
    for one, result in (pair for response in answers for pair in zip(asked, response.responses, strict=True)):
        kind, name = one
        resource = make_topic_resource(name) if kind == 2 else THE_CLUSTER
        refused = REFUSED if kind == 2 else ErrorCode.cluster_authorization_failed
        is_passed = allowed.may(Operation.ALTER_CONFIGS, resource)
        assert result.error_code is (
            ErrorCode.invalid_request if asked.count(one) > 1 else DONE if is_passed else refused
        )


@given(asked=names, allowed=rights(Operation.READ))
async def test_who_produces_is_told_to_who_may_read(asked: list[str], allowed: Given) -> None:
    topics = tuple(TopicRequest(name=WireTopicName(name), partition_indexes=(i32(0), i32(1))) for name in asked)
    request = DescribeProducersRequest(topics=topics)
    split = await split_nodes.describe_producers(request, allowed)
    response = await split.answer_allowed(Controller(as_broker.leads_nothing))
    assert [found.name for found in response.topics] == asked
    for found in response.topics:
        may_read = allowed.may(Operation.READ, make_topic_resource(found.name))
        wanted = ErrorCode.not_leader_or_follower if may_read else REFUSED
        assert [partition.error_code for partition in found.partitions] == [wanted, wanted]
