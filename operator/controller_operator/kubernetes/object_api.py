"""The Kubernetes seam: all that the operator asks of the API server, and what may come of it.

Statuses are written as merge patches of what differs, and finalizers as a whole; both only over the version of the object
that they were decided on. The real thing is `kubernetes_objects`.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from controller_operator.kubernetes.object_store import Key, Raw


class ApiError(Exception):
    """The API server did not do what it was asked for."""


class ObjectGone(ApiError):
    """There is no such object (any more)."""


class ObjectChanged(ApiError):
    """The object is not as it was known: look at it again. Also: it is there already."""


class ApiUnavailable(ApiError):
    """The API server does not answer, or cannot now. Retriable."""


class VersionExpired(ApiUnavailable):
    """What the next page of a listing would go on from is too old: list again."""


class ApiRefused(ApiError):
    """The API server refuses: rights are missing, or a schema forbids it. Retried slowly; a person has to act."""


class ApiForbidden(ApiRefused):
    """Rights are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Objects of a kind, all or a page, at one version, the newest that there was when the listing was asked for."""

    items: list[Raw]
    version: str


class ObjectApi(Protocol):
    """What the operator does with objects. Every method raises `ApiError`s."""

    async def list_all(self, kind: str, namespace: str | None) -> Listing:
        """All objects of a kind, in a namespace or (None) everywhere."""
        ...

    def pages(self, kind: str, namespace: str | None) -> AsyncGenerator[Listing, None]:
        """The same, some hundred at a time: all as JSON in memory at once would take several times what is kept of them.

        There is one page at least, and all have the same version."""
        ...

    async def served_kinds(self) -> frozenset[str]:
        """The kinds of ours that the API server serves."""
        ...

    async def get(self, key: Key) -> Raw: ...

    async def patch_status(self, raw: Raw, patch: Raw) -> Raw:
        """Applies a merge patch to the status of the object as it is known; returns the object afterwards."""
        ...

    async def set_finalizers(self, raw: Raw, finalizers: list[str]) -> Raw:
        """Replaces the finalizers of the object as it is known; returns the object afterwards."""
        ...

    async def create(self, raw: Raw) -> Raw: ...

    async def delete(self, raw: Raw) -> None:
        """Deletes this very object, as it is known."""
        ...

    async def schemas(self) -> Mapping[str, Raw]:
        """The schemas by which the API server keeps objects, by kind: what they do not name, it drops."""
        ...

    async def create_event(self, namespace: str, event: Raw) -> None:
        """Posts a Kubernetes event. If there is one of that name, only a count above 1 changes anything: it is renewed."""
        ...

    async def keep_leftover(self, namespace: str, name: str, entry: str, text: str) -> None:
        """Keeps a leftover in the ConfigMap of that name, which is made if it is not there; the oldest entries go."""
        ...


RENEWED_IN_EVENTS: Final = ("count", "lastTimestamp", "message")
"""The fields of an event that change when what it is about happens again."""


def merge_patch(before: Raw, after: Raw) -> Raw:
    """The JSON merge patch (RFC 7386) that makes `after` of `before`; empty where they are equal."""
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
