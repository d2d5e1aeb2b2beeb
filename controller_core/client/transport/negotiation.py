"""Finds a version of an API that client and server both speak (KIP-35), and converts requests to it.

A request is written in one version. If the server does not speak it, the request is sent in the nearest version that
the server speaks, and the answer is converted back. A request that would lose content is not sent: it is converted back
and compared to find out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.errors import ErrorCode
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.client.errors import Unsupported
from controller_core.wire.codecs.redaction import redact
from controller_core.wire.codecs.versions import convert

_UPDATE_FEATURES: Final = 57
_MEANS_WHAT_IT_SAYS_IN_ITS_VERSION_ALONE: Final = frozenset({_UPDATE_FEATURES})
"""Version 2 of UpdateFeatures takes all updates or none, unlike version 1, so the caller chooses the version."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """The oldest and newest version of each API that a server speaks, by API key."""

    of: Mapping[int, tuple[int, int]]

    @classmethod
    def read(cls, response: ApiVersionsResponse) -> "Ranges":
        """Return the versions in a server's answer. Raises `Unsupported` if it is an error."""
        if response.error_code is not ErrorCode.none:
            raise Unsupported(f"it does not report its versions: {response.error_code.name}")
        return cls({int(each.api_key): (int(each.min_version), int(each.max_version)) for each in response.api_keys})

    def fit(self, request: RequestPayload) -> RequestPayload:
        """Return the request in the version nearest to its own. Raises `Unsupported`."""
        key, version = int(request.__api_key__), int(request.__version__)
        name = type(request).__name__.removesuffix("Request")
        if key not in self.of:
            raise Unsupported(f"it does not support {name}: use a newer server")
        oldest, newest = self.of[key]
        nearest = min(max(version, oldest), newest)
        if nearest == version:
            return request
        spoken = f"it supports versions {oldest} to {newest} of {name}, and the request needs version {version}"
        if key in _MEANS_WHAT_IT_SAYS_IN_ITS_VERSION_ALONE:
            raise Unsupported(spoken)
        try:
            wanted = redact(load_request_schema(key, nearest))
        except KioIndexError as error:
            raise Unsupported(f"{spoken}: {error}") from error
        fitting = convert(request, wanted)
        if convert(fitting, type(request)) != request:
            raise Unsupported(f"{spoken}, because an older one cannot carry all its fields")
        return fitting


def response_type_of(request: RequestPayload) -> type[ResponsePayload]:
    """Return the response type of a request."""
    return redact(load_response_schema(int(request.__api_key__), int(request.__version__)))
