"""Reads a broker's static configuration, as DescribeConfigs reports it (KIP-226).

A broker answers with the effective value, and with each source that sets it: dynamic configurations, which are in
ZooKeeper, `server.properties` (static), and Kafka's default. Only the broker knows the last two.
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
"""The sources that only the broker knows, in order: its file, then the default."""


def static_config_request(broker: BrokerId, names: Collection[str]) -> DescribeConfigsRequest:
    """Return a request for these configurations and their sources. Only the broker itself can answer it."""
    resource = DescribeConfigsResource(
        resource_type=_BROKER, resource_name=str(broker), configuration_keys=tuple(sorted(names))
    )
    return DescribeConfigsRequest(resources=(resource,), include_synonyms=True)


def decode_static_config(content: bytes) -> dict[str, str]:
    """Return the known values by name. Raises `Undecodable`, also if the broker refuses."""
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
