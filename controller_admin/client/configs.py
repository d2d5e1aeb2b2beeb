"""The configurations of topics, and how they are altered."""

from collections.abc import Mapping, Sequence
from typing import Final

from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig, AlterConfigsResource
from kio.static.primitive import i8

from controller_admin.client.cluster import Call
from controller_admin.client.errors import require

TOPIC: Final = i8(2)
BROKER: Final = i8(4)
SET, DELETE, APPEND = i8(0), i8(1), i8(2)
_OF_THE_TOPIC: Final = 1
"""Where a configuration comes from: it is the topic's own."""


async def own_configs(call: Call, topics: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """What was set for each topic; a secret has no value. Raises `Refused`."""
    resources = (
        DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=None) for topic in topics
    )
    response = await call.ask_any(DescribeConfigsRequest(resources=tuple(resources)), DescribeConfigsResponse)
    for each in response.results:
        require(f"the configurations of topic {each.resource_name}", each.error_code, each.error_message)
    return {
        each.resource_name: {
            config.name: config.value for config in each.configs if config.config_source == _OF_THE_TOPIC
        }
        for each in response.results
    }


async def alter_configs(
    call: Call, topic: str, added: Mapping[str, str], deleted: Sequence[str], *, validate_only: bool
) -> None:
    """Sets and deletes configurations of a topic. Raises `Refused`."""
    changes = (
        *(AlterableConfig(name=name, config_operation=SET, value=value) for name, value in added.items()),
        *(AlterableConfig(name=name, config_operation=DELETE, value=None) for name in deleted),
    )
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=changes)
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=validate_only)
    for each in (await call.ask_controller(request, IncrementalAlterConfigsResponse)).responses:
        require(f"the configurations of topic {topic}", each.error_code, each.error_message)
