"""The Kubernetes seam: the operator's requests to the API server, and their errors.

Statuses and specs are written as merge patches of the differences, and finalizers as a whole. All are conditional on the
version of the object that the decision is based on. The implementation is `kubernetes_objects`.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from controller_operator.kubernetes.object_store import Key, Raw


class ApiError(Exception):
    """The API server did not carry out a request."""


class ObjectGone(ApiError):
    """The object does not exist, or no longer."""


class ObjectChanged(ApiError):
    """The object has another version than the known one, or exists already. Read it again."""


class ApiUnavailable(ApiError):
    """The API server does not answer, or cannot at the moment. Retriable."""


class VersionExpired(ApiUnavailable):
    """The version that the next page of a listing needs is too old: list again."""


class ApiRefused(ApiError):
    """The API server refuses: rights are missing, or a schema forbids it. Retried slowly; a person must act."""


class ApiForbidden(ApiRefused):
    """Rights are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Objects of a kind, all or a page, at one version: the newest one at the time of the request."""

    items: list[Raw]
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigMap:
    """The entries of a ConfigMap at one version."""

    version: str
    entries: Mapping[str, str]


class ObjectApi(Protocol):
    """The operator's requests about objects. Every method raises `ApiError`s."""

    async def list_all(self, kind: str, namespace: str | None) -> Listing:
        """Return all objects of a kind, in a namespace or (None) everywhere."""
        ...

    def pages(self, kind: str, namespace: str | None) -> AsyncGenerator[Listing, None]:
        """Yield the same in pages of some hundred, because all JSON in memory at once would take several times the
        store.

        There is at least one page, and all have the same version."""
        ...

    async def read_served_kinds(self) -> frozenset[str]:
        """Return the operator's kinds that the API server serves."""
        ...

    async def get(self, key: Key) -> Raw: ...

    async def patch_status(self, raw: Raw, patch: Raw) -> Raw:
        """Apply a merge patch to the status of the known version of an object. Return the new object."""
        ...

    async def patch_known_spec(self, raw: Raw, patch: Raw) -> Raw:
        """Apply a merge patch to the spec of the known version of an object. Return the new object."""
        ...

    async def set_finalizers(self, raw: Raw, finalizers: list[str]) -> Raw:
        """Replace the finalizers of the known version of an object. Return the new object."""
        ...

    async def create(self, raw: Raw) -> Raw: ...

    async def delete(self, raw: Raw) -> None:
        """Delete the known version of this very object."""
        ...

    async def schemas(self) -> Mapping[str, Raw]:
        """Return the schemas of the API server by kind. It drops fields that they do not name."""
        ...

    async def is_ending(self, namespace: str) -> bool:
        """Return True if a namespace is being deleted, or is gone."""
        ...

    async def create_event(self, namespace: str, event: Raw) -> None:
        """Post a Kubernetes event. An event of the same name is renewed if the count is above 1, and otherwise kept."""
        ...

    async def keep_leftover(self, namespace: str, name: str, entry: str, text: str) -> None:
        """Add a leftover to the ConfigMap of that name, which is created if missing. The oldest entries are dropped."""
        ...

    async def read_config_map(self, namespace: str, name: str) -> ConfigMap | None:
        """Return a ConfigMap; None if it does not exist."""
        ...

    async def write_entry(self, namespace: str, name: str, entry: str, text: str | None, known: str | None) -> None:
        """Set or remove (None) an entry of the known version of a ConfigMap, which is created if that is None."""
        ...


RENEWED_IN_EVENTS: Final = ("count", "lastTimestamp", "message")
"""The fields of an event that change when its occurrence repeats."""


def merge_patch(before: Raw, after: Raw) -> Raw:
    """Return the JSON merge patch (RFC 7386) from `before` to `after`; empty if they are equal."""
    patch: Raw = dict.fromkeys(before.keys() - after.keys())
    for name, value in after.items():
        known = before.get(name)
        if isinstance(value, dict) and isinstance(known, dict):
            inner = merge_patch(known, value)
            if inner:
                patch[name] = inner
        elif name not in before or value != known:
            patch[name] = value
    return patch
