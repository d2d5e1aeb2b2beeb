"""Requests that create, change and delete topics in clusters without ZooKeeper.

Each request is idempotent: an existing topic is not created again, partitions are added up to a number, a configuration
is changed key by key, and a topic is deleted by its id. The next plan gets a refusal with Kafka's own words; if the
cluster has changed by then, that plan ignores it.
Brokers hide topics that the user may not Describe. If such a topic is requested by name, they answer that it is not
authorized, whether it exists or not.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

import structlog
from kio.schema.create_partitions.v1 import CreatePartitionsResponse
from kio.schema.create_topics.v7 import CreateTopicsResponse
from kio.schema.delete_topics.v6 import DeleteTopicsResponse
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsResponse
from kio.schema.metadata.v11 import MetadataResponse
from kio.static.primitive import i32Timedelta

from controller_core.client.errors import AdminError
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import TopicId, TopicName
from controller_core.wire.requests.configs import (
    ConfigChange,
    Operation,
    make_alter_configs_request,
    make_topic_resource,
)
from controller_core.wire.requests.metadata import make_metadata_request
from controller_core.wire.requests.topics import (
    make_create_assigned_topic_request,
    make_create_partitions_request,
    make_delete_topic_by_id_request,
)
from controller_operator.kafka.actions import AddPartitions, AlterTopicConfig, CreateTopic, MarkTopicForDeletion
from controller_operator.kafka.requests.momentary import is_momentary
from controller_operator.kafka.requests.rights import describe_error


@dataclass(frozen=True, slots=True, kw_only=True)
class MissTopic:
    """Checks that a hidden topic is gone. It is done if the topic is gone, and refused if Kafka does not tell."""

    topic: TopicName


TopicStep: TypeAlias = CreateTopic | AddPartitions | AlterTopicConfig | MarkTopicForDeletion | MissTopic
_TIMEOUT: Final = i32Timedelta.parse(timedelta(seconds=15))
_RIGHTS: Final = {
    CreateTopic: "Create the topic",
    AddPartitions: "Alter the topic",
    AlterTopicConfig: "AlterConfigs of the topic",
    MarkTopicForDeletion: "Delete the topic",
    MissTopic: "Describe the topic",
}
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicReply:
    """The result of a step."""

    step: TopicStep
    topic_id: TopicId | None = None
    """The id of a created topic."""
    refused: str | None = None
    """The reason of a refusal, in Kafka's words."""
    trouble: str | None = None
    """The reason why there is no answer; None if there is one. It is then unknown if the step was done."""

    @property
    def is_done(self) -> bool:
        return self.refused is None and self.trouble is None


async def ask_for_topic(step: TopicStep, client: ControllerClient) -> TopicReply:
    """Ask the controller and return its reply. An error is trouble for the plan to report and retry."""
    try:
        match step:
            case CreateTopic():
                return await _create(step, client)
            case AddPartitions():
                return await _add_partitions(step, client)
            case AlterTopicConfig():
                return await _alter_config(step, client)
            case MarkTopicForDeletion():
                return await _delete(step, client)
            case MissTopic():
                return await _miss(step, client)
    except AdminError as error:
        _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
        return TopicReply(step=step, trouble=str(error))


async def _create(step: CreateTopic, client: ControllerClient) -> TopicReply:
    assignment = {number: each.replicas for number, each in step.assignment.partitions.items()}
    request = make_create_assigned_topic_request(step.topic, assignment, dict(sorted(step.config.items())), _TIMEOUT)
    response = await client.ask(request, CreateTopicsResponse)
    reply = _reply(step, ((each.error_code, each.error_message) for each in response.topics))
    given = next((each.topic_id for each in response.topics), None)
    if reply.is_done and given is not None:
        return TopicReply(step=step, topic_id=TopicId(given))
    return reply


async def _add_partitions(step: AddPartitions, client: ControllerClient) -> TopicReply:
    partitions = step.assignment.partitions
    added = [each.replicas for number, each in sorted(partitions.items()) if number >= step.present]
    request = make_create_partitions_request(step.topic, len(partitions), added, _TIMEOUT)
    response = await client.ask(request, CreatePartitionsResponse)
    return _reply(step, ((each.error_code, each.error_message) for each in response.results))


async def _alter_config(step: AlterTopicConfig, client: ControllerClient) -> TopicReply:
    changes = tuple(
        ConfigChange(name=key, operation=Operation.DELETE if value is None else Operation.SET, value=value)
        for key, value in sorted(step.changes.items())
    )
    request = make_alter_configs_request({make_topic_resource(step.topic): changes})
    response = await client.ask(request, IncrementalAlterConfigsResponse)
    return _reply(step, ((each.error_code, each.error_message) for each in response.responses))


async def _delete(step: MarkTopicForDeletion, client: ControllerClient) -> TopicReply:
    request = make_delete_topic_by_id_request(step.topic_id, _TIMEOUT)
    response = await client.ask(request, DeleteTopicsResponse)
    return _reply(step, ((each.error_code, each.error_message) for each in response.responses))


async def _miss(step: MissTopic, client: ControllerClient) -> TopicReply:
    answer = await client.ask(make_metadata_request([step.topic]), MetadataResponse)
    found = [each.error_code for each in answer.topics]
    if all(code is ErrorCode.unknown_topic_or_partition for code in found):
        return TopicReply(step=step)
    if ErrorCode.topic_authorization_failed in found:
        return _reply(step, ((code, None) for code in found))
    return TopicReply(step=step, trouble="one broker shows it, and another one does not")


def _reply(step: TopicStep, said: Iterable[tuple[ErrorCode, str | None]]) -> TopicReply:
    for code, message in said:
        if code is not ErrorCode.none:
            why = describe_error(code, message, _RIGHTS[type(step)])
            return TopicReply(step=step, trouble=why) if is_momentary(code) else TopicReply(step=step, refused=why)
    return TopicReply(step=step)
