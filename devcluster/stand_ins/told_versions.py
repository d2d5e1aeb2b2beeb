"""The ApiVersions answer of a fake broker, which links request first."""

from collections.abc import Mapping
from typing import Final

from kio.schema.api_versions.v0 import ApiVersionsResponse
from kio.schema.api_versions.v0.response import ApiVersion
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16

API_VERSIONS: Final = 18
"""The request with which a controller finds out that it reaches a broker, and which versions the broker supports."""
OF_KAFKA_3_9: Final = {4: 7, 5: 4, 6: 8}
"""The newest version of each of the controller's requests to brokers."""


def make_versions_response(newest: Mapping[int, int] = OF_KAFKA_3_9) -> ApiVersionsResponse:
    """Return the answer that supports each API from the first version to the newest."""
    ranges = (ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(most)) for key, most in newest.items())
    return ApiVersionsResponse(error_code=ErrorCode.none, api_keys=tuple(ranges))
