"""Reads `min.insync.replicas` of topics: their own values, or the default of the broker that answers."""

from collections.abc import Iterable
from typing import Final

from kio.schema.describe_configs.v4 import DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResult
from kio.schema.errors import ErrorCode

from controller_core.model.ids import TopicName
from controller_core.wire.client.request_client import ControllerClient
from controller_core.wire.requests.configs import make_describe_configs_request, make_topic_resource

MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"

_TOPICS_PER_REQUEST: Final = 500
"""Limits the requests, because a broker reads ZooKeeper for every topic."""
_GONE: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception)


class ConfigRefused(Exception):
    """A broker refuses to describe a topic's configuration. `error_code` has the reason."""

    def __init__(self, topic: str, error_code: ErrorCode, message: str | None) -> None:
        super().__init__(f"DescribeConfigs of topic {topic}: {error_code.name}{f' ({message})' if message else ''}")
        self.error_code = error_code


async def ask_min_insync_replicas(client: ControllerClient, topics: Iterable[TopicName]) -> dict[TopicName, int]:
    """Return the values by topic. Deleted topics are left out. Raises `ConfigRefused` and `RequestError`."""
    names = sorted(set(topics))
    found: dict[TopicName, int] = {}
    for start in range(0, len(names), _TOPICS_PER_REQUEST):
        asked = map(make_topic_resource, names[start : start + _TOPICS_PER_REQUEST])
        request = make_describe_configs_request(asked, (MIN_INSYNC_REPLICAS,))
        for result in (await client.ask(request, DescribeConfigsResponse)).results:
            value = _value(result)
            if value is not None:
                found[TopicName(result.resource_name)] = value
    return found


def _value(result: DescribeConfigsResult) -> int | None:
    if result.error_code in _GONE:
        return None
    values = [config.value for config in result.configs if config.name == MIN_INSYNC_REPLICAS]
    if result.error_code is not ErrorCode.none or not values or values[0] is None:
        raise ConfigRefused(result.resource_name, result.error_code, result.error_message)
    return int(values[0])
