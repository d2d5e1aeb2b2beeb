"""Reads a broker's static configuration, as DescribeConfigs reports it (KIP-226).

A broker answers with the effective value, and with each source that sets it: dynamic configurations, which are in
ZooKeeper, `server.properties` (static), and Kafka's default. Only the broker knows the last two.
"""

from typing import Final

from kio.schema.describe_configs.v4 import DescribeConfigsResponse
from kio.schema.describe_configs.v4.response import DescribeConfigsResourceResult
from kio.schema.errors import ErrorCode

from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import decode_response

_OWN: Final = (4, 5)
"""The sources that only the broker knows, in order: its file, then the default."""


def decode_static_config(content: bytes) -> dict[str, str]:
    """Return the known values by name. Raises `Undecodable`, also if the broker refuses."""
    return read_static_config(decode_response(DescribeConfigsResponse, content))


def read_static_config(response: DescribeConfigsResponse) -> dict[str, str]:
    """Return the known values of an answer by name. Raises `Undecodable` if the broker refuses."""
    values: dict[str, str] = {}
    for result in response.results:
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
