"""ApiVersions: the APIs and features of this broker, and the finalized features of the cluster.

Groups, transactions, ACLs and other brokers' configurations are not served: clients find the right brokers by Metadata
and FindCoordinator. So these APIs are not listed, and a request for one closes the connection, as in Kafka.
"""

import re
from collections.abc import Iterable
from typing import Any, Final

from kio.schema.api_versions.v0 import ApiVersionsResponse as ApiVersionsResponse0
from kio.schema.api_versions.v0.response import ApiVersion as ApiVersion0
from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.api_versions.v4.response import ApiVersion, FinalizedFeatureKey, SupportedFeatureKey
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16, i64
from kio.static.protocol import RequestPayload

from controller_core.wire.codecs.versions import Versions, convert
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.membership.node import Node

VERSIONS: Final = Versions(ApiVersionsRequest, oldest=0)

_FIRST_WITH_SOFTWARE: Final = 3
_LAST_WITHOUT_MINIMUM_0: Final = 3
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def on_api_versions(node: Node, served: Iterable[Versions[Any]], request: RequestPayload) -> ApiVersionsResponse:
    """Answer a request of any version. `served` has the APIs of this broker."""
    version = int(request.__version__)
    if version >= _FIRST_WITH_SOFTWARE and not _names_itself(convert(request, ApiVersionsRequest)):
        return ApiVersionsResponse(error_code=ErrorCode.invalid_request, api_keys=(), throttle_time=NO_THROTTLE)
    features = node.finalized_features
    return ApiVersionsResponse(
        error_code=ErrorCode.none,
        api_keys=tuple(
            ApiVersion(api_key=i16(api.key), min_version=i16(api.min), max_version=i16(api.max))
            for api in sorted(served, key=lambda api: api.key)
        ),
        throttle_time=NO_THROTTLE,
        supported_features=tuple(
            SupportedFeatureKey(name=name, min_version=i16(versions.min_version), max_version=i16(versions.max_version))
            for name, versions in node.supported_features.items()
            if versions.min_version > 0 or version > _LAST_WITHOUT_MINIMUM_0
        ),
        finalized_features_epoch=i64(features.epoch if features else -1),
        finalized_features=tuple(
            FinalizedFeatureKey(name=name, max_version_level=i16(level), min_version_level=i16(level))
            for name, level in (features.features if features else {}).items()
        ),
    )


def answer_unsupported() -> ApiVersionsResponse0:
    """Answer an unknown version in version 0, which every client knows, with the known versions (KIP-511)."""
    known = ApiVersion0(api_key=i16(VERSIONS.key), min_version=i16(VERSIONS.min), max_version=i16(VERSIONS.max))
    return ApiVersionsResponse0(error_code=ErrorCode.unsupported_version, api_keys=(known,))


def _names_itself(request: ApiVersionsRequest) -> bool:
    return all(_SOFTWARE.fullmatch(text) for text in (request.client_software_name, request.client_software_version))
