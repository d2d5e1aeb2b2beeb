"""DescribeConfigs (KIP-133, KIP-226) and IncrementalAlterConfigs (KIP-339)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from kio.schema.describe_configs.v4 import DescribeConfigsRequest
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.static.primitive import i8

from controller_core.model.ids import BrokerId


class ResourceType(IntEnum):
    """The types of resources with configurations, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4


class Operation(IntEnum):
    """The operations on a configuration, by Kafka's numbers."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A topic, a broker, or the defaults of all brokers."""

    type: ResourceType
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """A change of one configuration. `value` is None exactly if the operation is DELETE."""

    name: str
    operation: Operation
    value: str | None = None


BROKER_DEFAULTS: Final = ConfigResource(ResourceType.BROKER, "")
"""The resource that has the dynamic defaults of all brokers."""


def make_topic_resource(topic: str) -> ConfigResource:
    """Return the resource that has the configurations of a topic."""
    return ConfigResource(ResourceType.TOPIC, topic)


def make_broker_resource(broker: BrokerId) -> ConfigResource:
    """Return the resource that has the configurations of one broker."""
    return ConfigResource(ResourceType.BROKER, str(broker))


def make_describe_configs_request(
    resources: Iterable[ConfigResource], keys: Collection[str] | None = None, *, with_sources: bool = False
) -> DescribeConfigsRequest:
    """Return a request for these keys of each resource; None asks for all keys. With `with_sources`, the answer has
    every place that sets a value."""
    asked = None if keys is None else tuple(keys)
    return DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(resource_type=i8(each.type), resource_name=each.name, configuration_keys=asked)
            for each in resources
        ),
        include_synonyms=with_sources,
    )


def make_static_config_request(broker: BrokerId, names: Collection[str]) -> DescribeConfigsRequest:
    """Return a request to a broker for the values in its own file (`wire.codecs.static_configs`)."""
    return make_describe_configs_request([make_broker_resource(broker)], sorted(names), with_sources=True)


def make_alter_configs_request(
    changes: Mapping[ConfigResource, Iterable[ConfigChange]], *, validate_only: bool = False
) -> IncrementalAlterConfigsRequest:
    """Return a request that changes configurations of several resources, key by key."""
    return IncrementalAlterConfigsRequest(
        resources=tuple(
            AlterConfigsResource(
                resource_type=i8(resource.type),
                resource_name=resource.name,
                configs=tuple(
                    AlterableConfig(name=each.name, config_operation=i8(each.operation), value=each.value)
                    for each in changed
                ),
            )
            for resource, changed in changes.items()
        ),
        validate_only=validate_only,
    )
