"""Reads the configurations of topics and brokers, and alters those of topics."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult, DescribeConfigsResult
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsResponse

from controller_core.client.cluster import Call
from controller_core.client.errors import AnswerUnreadable, Refused, require
from controller_core.client.results import DONE, Result
from controller_core.client.transport.request_client import ControllerClient
from controller_core.model.ids import BrokerId, TopicName
from controller_core.model.settings.shared import SHARED
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.static_configs import read_static_config
from controller_core.wire.requests.configs import (
    ConfigChange,
    Operation,
    make_alter_configs_request,
    make_broker_resource,
    make_describe_configs_request,
    make_static_config_request,
    make_topic_resource,
)

AskConfigs = Callable[[DescribeConfigsRequest, type[DescribeConfigsResponse]], Awaitable[DescribeConfigsResponse]]

_OF_THE_TOPIC: Final = 1
"""The source of a configuration that is set on the topic."""
_LOG_DIRECTORY: Final = "log.dir"
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"

_TOPICS_PER_REQUEST: Final = 500
"""Limits the requests, because a broker reads ZooKeeper for every topic."""
_GONE: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.invalid_topic_exception)


async def ask_min_insync_replicas(
    client: ControllerClient, topics: Iterable[TopicName], refused: list[Refused] | None = None
) -> dict[TopicName, int]:
    """Return the values by topic. Deleted topics are left out. Raises `AdminError`.

    With `refused`, topics whose configurations are refused are left out, too, and their errors are added to it."""
    names = sorted(set(topics))
    found: dict[TopicName, int] = {}
    for start in range(0, len(names), _TOPICS_PER_REQUEST):
        asked = map(make_topic_resource, names[start : start + _TOPICS_PER_REQUEST])
        request = make_describe_configs_request(asked, (MIN_INSYNC_REPLICAS,))
        for result in (await client.ask(request, DescribeConfigsResponse)).results:
            try:
                value = _read_min_insync_replicas(result)
            except Refused as error:
                if refused is None:
                    raise
                refused.append(error)
                continue
            if value is not None:
                found[TopicName(result.resource_name)] = value
    return found


async def read_own_configs(call: Call, topics: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """Return the configurations that are set on each topic. A secret has no value. Raises `Refused`."""
    request = make_describe_configs_request(map(make_topic_resource, topics))
    response = await call.ask_any(request, DescribeConfigsResponse)
    for each in response.results:
        require(f"the configurations of topic {each.resource_name}", each.error_code, each.error_message)
    return {
        each.resource_name: {
            config.name: config.value for config in each.configs if config.config_source == _OF_THE_TOPIC
        }
        for each in response.results
    }


async def keeps_logs(call: Call, broker: BrokerId) -> bool:
    """Return True if a node that is listed as a broker is one. A pure controller has no log directory."""
    return _LOG_DIRECTORY in await _read_broker_configs(call, broker, (_LOG_DIRECTORY,))


async def _read_broker_configs(
    call: Call, broker: BrokerId, names: Sequence[str]
) -> dict[str, DescribeConfigsResourceResult]:
    request = make_describe_configs_request([make_broker_resource(broker)], names)
    response = await call.ask_broker(broker, request, DescribeConfigsResponse)
    for each in response.results:
        require(f"the configurations of broker {broker}", each.error_code, each.error_message)
    return {config.name: config for each in response.results for config in each.configs}


async def read_shared_settings(ask: AskConfigs, node: BrokerId) -> dict[str, str]:
    """Return the settings that all nodes of a cluster should share, by name, as the node's own file has them. Raises
    `AdminError`.

    `ask` asks this node alone."""
    response = await ask(make_static_config_request(node, SHARED), DescribeConfigsResponse)
    try:
        return read_static_config(response)
    except Undecodable as error:
        raise AnswerUnreadable(str(error)) from error


async def alter_configs(
    client: ControllerClient, topic: str, changes: Mapping[str, str | None], *, validate_only: bool = False
) -> Result:
    """Set configurations of a topic, and return those with None to their defaults."""
    changed = tuple(
        ConfigChange(name=name, operation=Operation.DELETE if value is None else Operation.SET, value=value)
        for name, value in changes.items()
    )
    request = make_alter_configs_request({make_topic_resource(topic): changed}, validate_only=validate_only)
    response = await client.ask(request, IncrementalAlterConfigsResponse)
    results = (Result(code=each.error_code, message=each.error_message) for each in response.responses)
    return next((result for result in results if not result.is_done), DONE)


def _read_min_insync_replicas(result: DescribeConfigsResult) -> int | None:
    if result.error_code in _GONE:
        return None
    values = [config.value for config in result.configs if config.name == MIN_INSYNC_REPLICAS]
    if result.error_code is not ErrorCode.none or not values or values[0] is None:
        raise Refused(f"min.insync.replicas of topic {result.resource_name}", result.error_code, result.error_message)
    return int(values[0])
