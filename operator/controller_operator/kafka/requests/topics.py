"""Requests that create, change and delete topics in clusters without ZooKeeper.

Each request is idempotent: an existing topic is not created again, partitions are added up to a number, a configuration
is changed key by key, and a topic is deleted by its id. The next plan gets a refusal with Kafka's own words; if the
cluster has changed by then, that plan ignores it.
Brokers hide topics that the user may not Describe. If such a topic is requested by name, they answer that it is not
authorized, whether it exists or not.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeAlias

import structlog
from kio.schema.errors import ErrorCode
from kio.static.primitive import i32Timedelta

from controller_core.client.configs import alter_configs
from controller_core.client.errors import AdminError
from controller_core.client.results import Result
from controller_core.client.topics.requests import (
    add_partitions,
    create_assigned_topic,
    delete_topic_by_id,
    find_topic,
)
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import TopicId, TopicName
from controller_operator.kafka.actions import AddPartitions, AlterTopicConfig, CreateTopic, MarkTopicForDeletion
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
                changes = dict(sorted(step.changes.items()))
                return _make_reply(step, await alter_configs(client, step.topic, changes))
            case MarkTopicForDeletion():
                return _make_reply(step, await delete_topic_by_id(client, step.topic_id, _TIMEOUT))
            case MissTopic():
                return await _miss(step, client)
    except AdminError as error:
        _log.warning("controller not asked", error=f"{type(error).__name__}: {error}")
        return TopicReply(step=step, trouble=str(error))


async def _create(step: CreateTopic, client: ControllerClient) -> TopicReply:
    assignment = {number: each.replicas for number, each in step.assignment.partitions.items()}
    config = dict(sorted(step.config.items()))
    result, topic_id = await create_assigned_topic(client, step.topic, assignment, config, _TIMEOUT)
    return TopicReply(step=step, topic_id=topic_id) if result.is_done else _make_reply(step, result)


async def _add_partitions(step: AddPartitions, client: ControllerClient) -> TopicReply:
    partitions = step.assignment.partitions
    added = [each.replicas for number, each in sorted(partitions.items()) if number >= step.present]
    return _make_reply(step, await add_partitions(client, step.topic, len(partitions), added, _TIMEOUT))


async def _miss(step: MissTopic, client: ControllerClient) -> TopicReply:
    found = await find_topic(client, step.topic)
    match found.code:
        case ErrorCode.unknown_topic_or_partition:
            return TopicReply(step=step)
        case ErrorCode.topic_authorization_failed:
            return _make_reply(step, found)
        case _:
            return TopicReply(step=step, trouble="one broker shows it, and another one does not")


def _make_reply(step: TopicStep, result: Result) -> TopicReply:
    if result.is_done:
        return TopicReply(step=step)
    why = describe_error(result.code, result.message, _RIGHTS[type(step)])
    return TopicReply(step=step, trouble=why) if result.is_momentary else TopicReply(step=step, refused=why)
