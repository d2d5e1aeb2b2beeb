"""ApiVersions (KIP-35): the versions that a server speaks, and since KIP-584 its features."""

from typing import Final

from kio.schema.api_versions.v0 import ApiVersionsRequest as ApiVersionsRequest0
from kio.schema.api_versions.v3 import ApiVersionsRequest as ApiVersionsRequest3
from kio.schema.api_versions.v4 import ApiVersionsRequest as ApiVersionsRequest4

_SOFTWARE: Final = "kontroller"
_SOFTWARE_VERSION: Final = "1"

BASIC_SERVER_VERSIONS: Final = ApiVersionsRequest0()
"""Asks for the versions, in the version that every server answers."""
SERVER_VERSIONS: Final = ApiVersionsRequest3(client_software_name=_SOFTWARE, client_software_version=_SOFTWARE_VERSION)
"""Asks for the versions and the features. All servers since Kafka 2.4 answer it with the newest versions they speak."""
SERVER_FEATURES: Final = ApiVersionsRequest4(client_software_name=_SOFTWARE, client_software_version=_SOFTWARE_VERSION)
"""Asks for the versions and the features, including features whose range begins at level 0."""
