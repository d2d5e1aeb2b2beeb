"""Which version of an API a client and a server both speak (KIP-35): what the server says, and a request made to fit.

A request is written in one version. Where a server does not speak that, it is sent in the nearest one that the server
speaks, and the answer is read as that of the version in which it was written. A request that would lose what it says is not
sent: that is seen by having it back in the version that it came in.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.schema.api_versions.v3 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.wire.codecs.redaction import redacted
from controller_core.wire.codecs.versions import converted

ASK_FOR_RANGES: Final = ApiVersionsRequest(client_software_name="kontroller", client_software_version="1")
"""In the version that all servers since Kafka 2.4 take; the newest that they know they say in their answer."""
_UPDATE_FEATURES: Final = 57
_MEANS_WHAT_IT_SAYS_IN_ITS_VERSION_ALONE: Final = frozenset({_UPDATE_FEATURES})
"""Version 2 of UpdateFeatures takes all updates or none, as version 1 does not: who asks chooses between them."""


class NoCommonVersion(Exception):
    """The server speaks no version that can carry the request; the message says which it speaks."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """The oldest and the newest version that a server speaks of each API, by the API's key."""

    of: Mapping[int, tuple[int, int]]

    @classmethod
    def read(cls, response: ApiVersionsResponse) -> "Ranges":
        """Raises `NoCommonVersion` where the server does not tell."""
        if response.error_code is not ErrorCode.none:
            raise NoCommonVersion(f"it does not say which versions it speaks: {response.error_code.name}")
        return cls({int(each.api_key): (int(each.min_version), int(each.max_version)) for each in response.api_keys})

    def fitted(self, request: RequestPayload) -> RequestPayload:
        """The request in the version nearest to its own. Raises `NoCommonVersion`."""
        key, version = int(request.__api_key__), int(request.__version__)
        name = type(request).__name__.removesuffix("Request")
        if key not in self.of:
            raise NoCommonVersion(f"it does not know {name} at all: ask a newer server")
        oldest, newest = self.of[key]
        nearest = min(max(version, oldest), newest)
        if nearest == version:
            return request
        spoken = f"it speaks versions {oldest} to {newest} of {name}, and this needs version {version}"
        if key in _MEANS_WHAT_IT_SAYS_IN_ITS_VERSION_ALONE:
            raise NoCommonVersion(spoken)
        try:
            wanted = redacted(load_request_schema(key, nearest))
        except KioIndexError as error:
            raise NoCommonVersion(f"{spoken}: {error}") from error
        fitting = converted(request, wanted)
        if converted(fitting, type(request)) != request:
            raise NoCommonVersion(f"{spoken}, as an older one cannot say all of it")
        return fitting


def response_type_of(request: RequestPayload) -> type[ResponsePayload]:
    """What a server answers to a request."""
    return redacted(load_response_schema(int(request.__api_key__), int(request.__version__)))
