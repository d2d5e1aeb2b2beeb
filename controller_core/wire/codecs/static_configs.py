"""What a broker's own file says of its configurations, as DescribeConfigs tells it (KIP-226).

A broker answers with what is in force, and with each place that says something: dynamic configurations, which are in
ZooKeeper, and `server.properties` (static) or Kafka's default, which only the broker knows.
"""

from collections.abc import Collection
from typing import Final

from kio.schema.describe_configs.v4 import DescribeConfigsRequest, DescribeConfigsResponse
from kio.schema.describe_configs.v4.request import DescribeConfigsResource
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8

from controller_core.model.ids import BrokerId
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import decode_response

_BROKER: Final = i8(4)
_OWN: Final = (4, 5)
"""Sources: the broker's file, else the default, in this order."""


def static_config_request(broker: BrokerId, names: Collection[str]) -> DescribeConfigsRequest:
    """Asks a broker, and only that one can answer, for these configurations and where they are from."""
    resource = DescribeConfigsResource(
        resource_type=_BROKER, resource_name=str(broker), configuration_keys=tuple(sorted(names))
    )
    return DescribeConfigsRequest(resources=(resource,), include_synonyms=True)


def decode_static_config(content: bytes) -> dict[str, str]:
    """The values by name, without those that it does not say. Raises `Undecodable`, also where the broker refuses to."""
    values: dict[str, str] = {}
    for result in decode_response(DescribeConfigsResponse, content).results:
        if result.error_code is not ErrorCode.none:
            raise Undecodable(f"DescribeConfigs: {result.error_code.name}")
        for config in result.configs:
            value = _own_value(config)
            if value is not None:
                values[config.name] = value
    return values


def _own_value(config: DescribeConfigsResourceResult) -> str | None:
    by_source = {int(synonym.source): synonym.value for synonym in config.synonyms}
    return next((by_source[source] for source in _OWN if source in by_source), None)
