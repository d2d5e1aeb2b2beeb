"""Requests for one topic: it is created, given partitions, deleted, or looked for. Each returns the server's result."""

from collections.abc import Iterable, Mapping, Sequence

from kio.schema.create_partitions.v1 import CreatePartitionsResponse
from kio.schema.create_topics.v5 import CreateTopicsResponse as CreateTopicsResponse5
from kio.schema.create_topics.v7 import CreateTopicsResponse as CreateTopicsResponse7
from kio.schema.delete_topics.v5 import DeleteTopicsResponse as DeleteTopicsResponse5
from kio.schema.delete_topics.v6 import DeleteTopicsResponse as DeleteTopicsResponse6
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v11 import MetadataResponse
from kio.static.primitive import i32Timedelta

from controller_core.client.reassigning.assignments import Replicas
from controller_core.client.results import DONE, Result
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import PartitionId, TopicId, TopicName
from controller_core.wire.requests.metadata import make_metadata_request
from controller_core.wire.requests.topics import (
    make_create_assigned_topic_request,
    make_create_partitions_request,
    make_create_topic_request,
    make_delete_topic_by_id_request,
    make_delete_topic_by_name_request,
)


async def create_topic(
    client: ControllerClient,
    topic: str,
    configs: Mapping[str, str],
    timeout: i32Timedelta,
    *,
    partitions: int | None = None,
    replication_factor: int | None = None,
    assignment: Mapping[PartitionId, Replicas] | None = None,
    validate_only: bool = False,
) -> Result:
    """Create a topic by counts or by an assignment. Without either, the cluster's defaults apply."""
    request = make_create_topic_request(
        topic,
        configs,
        timeout,
        partitions=partitions,
        replication_factor=replication_factor,
        assignment=assignment,
        validate_only=validate_only,
    )
    response = await client.ask(request, CreateTopicsResponse5)
    return _find_failure((each.error_code, each.error_message) for each in response.topics)


async def create_assigned_topic(
    client: ControllerClient,
    topic: TopicName,
    assignment: Mapping[PartitionId, Replicas],
    configs: Mapping[str, str],
    timeout: i32Timedelta,
) -> tuple[Result, TopicId | None]:
    """Create a topic by an assignment, and return its id, too."""
    request = make_create_assigned_topic_request(topic, assignment, configs, timeout)
    response = await client.ask(request, CreateTopicsResponse7)
    given = next((each.topic_id for each in response.topics), None)
    result = _find_failure((each.error_code, each.error_message) for each in response.topics)
    return result, None if given is None else TopicId(given)


async def add_partitions(
    client: ControllerClient,
    topic: str,
    count: int,
    added: Sequence[Replicas] | None,
    timeout: i32Timedelta,
    *,
    validate_only: bool = False,
) -> Result:
    """Give a topic `count` partitions. `added` has the replicas of each new one; None lets the controller choose."""
    request = make_create_partitions_request(topic, count, added, timeout, validate_only=validate_only)
    response = await client.ask(request, CreatePartitionsResponse)
    return _find_failure((each.error_code, each.error_message) for each in response.results)


async def delete_topic(client: ControllerClient, topic: str, timeout: i32Timedelta) -> Result:
    """Mark the topic of this name for deletion."""
    response = await client.ask(make_delete_topic_by_name_request(topic, timeout), DeleteTopicsResponse5)
    return _find_failure((each.error_code, each.error_message) for each in response.responses)


async def delete_topic_by_id(client: ControllerClient, topic_id: TopicId, timeout: i32Timedelta) -> Result:
    """Mark the topic with this id for deletion. A new topic of the same name is safe from it."""
    response = await client.ask(make_delete_topic_by_id_request(topic_id, timeout), DeleteTopicsResponse6)
    return _find_failure((each.error_code, each.error_message) for each in response.responses)


async def find_topic(client: ControllerClient, topic: TopicName) -> Result:
    """Return the result of a request for the metadata of a topic: a success only if the server knows the topic."""
    response = await client.ask(make_metadata_request([topic]), MetadataResponse)
    absent = Result(code=ErrorCode.unknown_topic_or_partition)
    return next((Result(code=each.error_code) for each in response.topics), absent)


def _find_failure(answered: Iterable[tuple[ErrorCode, str | None]]) -> Result:
    """Return the result of the only topic of a request."""
    results = (Result(code=code, message=message) for code, message in answered)
    return next((result for result in results if not result.is_done), DONE)
