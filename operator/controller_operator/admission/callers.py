"""The callers that the webhook answers: with an authority of client certificates only those that it names.

By default API servers show no certificate to webhooks, so no authority is required unless the settings name one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_COMMON_NAME: Final = "commonName"


@dataclass(frozen=True, slots=True, kw_only=True)
class Callers:
    """The certificates that the API server may show."""

    names: frozenset[str]
    """The common names that may ask. The authority may issue certificates to others as well."""

    def refuse(self, certificate: Mapping[str, Any] | None) -> str | None:
        """Return why a caller with this verified certificate gets no answer; None if it gets one."""
        if not certificate:
            return "the caller shows no client certificate"
        names = [value for part in certificate.get("subject", ()) for key, value in part if key == _COMMON_NAME]
        if not self.names.intersection(names):
            return f"the certificate's common name {', '.join(names) or '(none)'} is not one that may ask"
        return None
