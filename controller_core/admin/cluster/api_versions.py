"""ApiVersions: the APIs that clients may use on the controller's port.

Relayed requests are served in the versions of the broker that gets them. So that broker is asked, and its answer
amended: APIs that the controller answers are offered in its versions, refused ones are not offered, and the finalized
features are the controller's, which decides them. Supported features remain those of the broker.

If no broker answers, all relayed APIs are offered in the versions known here. A client takes a missing API as a
permanent lack. An offered request that cannot be relayed only closes the connection, and the client asks again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from kio.schema.api_versions.v0 import ApiVersionsResponse as ApiVersionsResponse0
from kio.schema.api_versions.v0.response import ApiVersion as ApiVersion0
from kio.schema.api_versions.v4 import ApiVersionsRequest, ApiVersionsResponse
from kio.schema.api_versions.v4.response import ApiVersion, FinalizedFeatureKey
from kio.schema.errors import ErrorCode
from kio.static.primitive import i16, i64
from kio.static.protocol import RequestPayload, ResponsePayload

from controller_core.admin.cluster.cluster_view import ClusterView
from controller_core.wire.api_table import HANDLING, REFUSED_API_KEYS, Handling
from controller_core.wire.codecs.versions import Versions, convert, list_known_versions
from controller_core.wire.listener.owned_api import AskBroker
from controller_core.wire.messages import NO_THROTTLE
from controller_core.wire.requests.api_versions import SERVER_VERSIONS

VERSIONS: Final = Versions(ApiVersionsRequest, oldest=0)

_FIRST_WITH_SOFTWARE: Final = 3
_KNOWN_TO_ALL: Final = SERVER_VERSIONS
"""Sent to a broker that does not know a newer client's version. All brokers since Kafka 2.4 know this one."""
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRange:
    """The supported versions of an API, both ends included."""

    min: int
    max: int


def on_api_versions(
    view: ClusterView | None, own: Mapping[int, VersionRange], request: RequestPayload
) -> ResponsePayload | AskBroker:
    """Answer a request. `view` is None outside of a term, when no features are known. `own` has the APIs answered here
    by key."""
    if request.__version__ >= _FIRST_WITH_SOFTWARE:
        names_itself = convert(request, ApiVersionsRequest)
        texts = (names_itself.client_software_name, names_itself.client_software_version)
        if not all(_SOFTWARE.fullmatch(text) for text in texts):
            return ApiVersionsResponse(error_code=ErrorCode.invalid_request, api_keys=(), throttle_time=NO_THROTTLE)

    def amend(answer: ResponsePayload) -> ResponsePayload:
        brokers = convert(answer, ApiVersionsResponse)
        offered = {int(key.api_key): key for key in brokers.api_keys if key.api_key not in REFUSED_API_KEYS}
        offered |= {key: _api_version(key, versions) for key, versions in own.items()}
        features = view.state.finalized_features if view is not None else None
        levels = features.features if features else {}
        return replace(
            brokers,
            api_keys=tuple(offered[key] for key in sorted(offered)),
            finalized_features_epoch=i64(features.epoch if features else -1),
            finalized_features=tuple(
                FinalizedFeatureKey(name=name, max_version_level=i16(level), min_version_level=i16(level))
                for name, level in levels.items()
            ),
        )

    async def otherwise() -> ResponsePayload:
        return amend(
            ApiVersionsResponse(error_code=ErrorCode.none, api_keys=_list_relayed_apis(), throttle_time=NO_THROTTLE)
        )

    older = _KNOWN_TO_ALL if request.__version__ > _KNOWN_TO_ALL.__version__ else None
    return AskBroker(older=older, amended=amend, otherwise=otherwise)


def make_unsupported_response() -> ResponsePayload:
    """Answer an unknown version with the supported ones, in the version that every client knows (KIP-511)."""
    known = ApiVersion0(api_key=i16(VERSIONS.key), min_version=i16(VERSIONS.min), max_version=i16(VERSIONS.max))
    return ApiVersionsResponse0(error_code=ErrorCode.unsupported_version, api_keys=(known,))


def _list_relayed_apis() -> tuple[ApiVersion, ...]:
    keys = (key for key, handling in HANDLING.items() if handling is Handling.RELAY)
    return tuple(
        _api_version(key, VersionRange(min=versions[0], max=versions[-1]))
        for key in keys
        if (versions := list_known_versions(key))
    )


def _api_version(key: int, versions: VersionRange) -> ApiVersion:
    return ApiVersion(api_key=i16(key), min_version=i16(versions.min), max_version=i16(versions.max))
