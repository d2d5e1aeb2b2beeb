"""The shape that a topic has, and the one that a request would give it, for topic rules."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from kio.schema.alter_configs.v2.request import AlterConfigsRequest
from kio.schema.create_partitions.v3.request import CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableTopic, CreateTopicsRequest

from controller_core.admin.refusals import ItemRefused
from controller_core.admin.topics.create_topics import read_numbers
from controller_core.controller.state.assigned_replicas import Topic
from controller_core.controller.term.term import Term
from controller_core.model.ids import BrokerId
from controller_core.model.topics.topic_changes import TopicShape
from controller_core.model.topics.topic_configs import TOPIC_CONFIGS, change_list

_SET, _DELETE, _APPEND = 0, 1, 2
_REPLACES_ALL: Final = AlterConfigsRequest.__api_key__


def make_new_shape(term: Term, asked: CreatableTopic) -> TopicShape:
    """Return the shape of a new topic. Raises `ItemRefused` if the request leaves it to an unknown default."""
    partitions, factor = read_numbers(term, asked)
    return TopicShape(
        name=asked.name,
        partitions=partitions,
        replication_factor=factor,
        configs={config.name: config.value for config in asked.configs if config.value is not None},
        replicas=[tuple(map(BrokerId, each.broker_ids)) for each in asked.assignments],
    )


def has_unknown_numbers(term: Term, request: CreateTopicsRequest) -> bool:
    """Return True if the request leaves a number to a default that is not known yet."""
    try:
        for asked in request.topics:
            read_numbers(term, asked)
    except ItemRefused:
        return True
    return False


def make_shape(name: str, topic: Topic, configs: Mapping[str, str]) -> TopicShape:
    """Return the shape of a topic in the cluster, which has partitions. Replicas that are being added count."""
    first = next(iter(topic.partitions.values()))
    return TopicShape(
        name=name, partitions=len(topic.partitions), replication_factor=len(first.target), configs=configs
    )


def make_grown_shape(old: TopicShape, asked: CreatePartitionsTopic) -> TopicShape:
    """Return the shape of a topic with more partitions."""
    replicas = [tuple(map(BrokerId, each.broker_ids)) for each in asked.assignments or ()]
    return replace(old, partitions=asked.count, replicas=replicas)


def make_altered_configs(configs: Mapping[str, str], resource: Any) -> dict[str, str]:
    """Return the configuration after an alteration: AlterConfigs replaces all of it, IncrementalAlterConfigs parts."""
    if resource.__api_key__ == _REPLACES_ALL:
        return {each.name: each.value for each in resource.configs if each.value is not None}
    altered = dict(configs)
    for change in resource.configs:
        if change.config_operation == _DELETE:
            altered.pop(change.name, None)
        elif change.value is not None:
            altered[change.name] = _apply(altered, change)
    return altered


def _apply(configs: Mapping[str, str], change: Any) -> str:
    """Return the value of a key after the change: brokers' defaults are those of Kafka for lists."""
    if change.config_operation == _SET:
        return str(change.value)
    known = TOPIC_CONFIGS.get(change.name)
    present = configs.get(change.name, known.default if known else "")
    return change_list(present, str(change.value), is_appended=change.config_operation == _APPEND)
