"""The Kubernetes seam: all that the operator asks of the API server beside the watches, which are kopf's.

Statuses are written as merge patches of what differs, and finalizers as a whole; both only over the version of the object
that they were decided on. `ObjectApi` is what the operator needs, `KubernetesObjects` is the real thing.
"""

from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final, Protocol

import kubernetes_asyncio.client as kubernetes
from aiohttp import ClientError
from kubernetes_asyncio.client.exceptions import ApiException

from controller_operator.kubernetes.object_store import KIND_CLASSES, Key, Raw, key_of
from controller_operator.resources.common import GROUP, VERSION

_PAGE: Final = 500
_MERGE: Final = "application/merge-patch+json"


class ApiError(Exception):
    """The API server did not do what it was asked for."""


class ObjectGone(ApiError):
    """There is no such object (any more)."""


class ObjectChanged(ApiError):
    """The object is not as it was known: look at it again. Also: it is there already."""


class ApiUnavailable(ApiError):
    """The API server does not answer, or cannot now. Retriable."""


class ApiRefused(ApiError):
    """The API server refuses: rights are missing, or a schema forbids it. Retried slowly; a person has to act."""


class ApiForbidden(ApiRefused):
    """Rights are missing."""


class ObjectApi(Protocol):
    """What the operator does with objects. Every method raises `ApiError`s."""

    async def list_all(self, kind: str, namespace: str | None) -> list[Raw]:
        """All objects of a kind, in a namespace or (None) everywhere."""
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
        """Deletes this very object."""
        ...

    async def create_event(self, namespace: str, event: Raw) -> None:
        """Posts a Kubernetes event; one of the same name is enough."""
        ...


class KubernetesObjects:
    """`ObjectApi` on a real API server."""

    def __init__(self) -> None:
        self._client = kubernetes.ApiClient()
        # Untyped: the generated signatures lack the client's own keywords, and ask for models where JSON is taken.
        self._objects: Any = kubernetes.CustomObjectsApi(self._client)
        self._core: Any = kubernetes.CoreV1Api(self._client)

    async def list_all(self, kind: str, namespace: str | None) -> list[Raw]:
        items: list[Raw] = []
        token = ""
        while True:
            arguments = {"limit": _PAGE, **({"_continue": token} if token else {})}
            page = await _asked(self._list_page(kind, namespace, arguments))
            items.extend(_typed(item, kind) for item in page["items"])
            token = page["metadata"].get("continue", "")
            if not token:
                return items

    async def get(self, key: Key) -> Raw:
        return await _asked(self._objects.get_namespaced_custom_object(*_place(key), key.name))

    async def patch_status(self, raw: Raw, patch: Raw) -> Raw:
        key = key_of(raw)
        body = {"metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]}, "status": patch}
        return await _asked(
            self._objects.patch_namespaced_custom_object_status(*_place(key), key.name, body, _content_type=_MERGE)
        )

    async def set_finalizers(self, raw: Raw, finalizers: list[str]) -> Raw:
        key = key_of(raw)
        body = {"metadata": {"resourceVersion": raw["metadata"]["resourceVersion"], "finalizers": finalizers}}
        return await _asked(
            self._objects.patch_namespaced_custom_object(*_place(key), key.name, body, _content_type=_MERGE)
        )

    async def create(self, raw: Raw) -> Raw:
        return await _asked(self._objects.create_namespaced_custom_object(*_place(key_of(raw)), raw))

    async def dry_run(self, raw: Raw) -> None:
        """What `create` raises, without creating anything."""
        await _asked(self._objects.create_namespaced_custom_object(*_place(key_of(raw)), raw, dry_run="All"))

    async def served_kinds(self) -> frozenset[str]:
        """The kinds of our group and version that the API server knows; `ObjectGone` where it knows neither."""
        found: Any = await _asked(self._objects.get_api_resources(GROUP, VERSION))
        return frozenset(resource.kind for resource in found.resources)

    async def delete(self, raw: Raw) -> None:
        key = key_of(raw)
        options = {"preconditions": {"uid": raw["metadata"]["uid"]}, "propagationPolicy": "Background"}
        await _asked(self._objects.delete_namespaced_custom_object(*_place(key), key.name, body=options))

    async def create_event(self, namespace: str, event: Raw) -> None:
        with suppress(ObjectChanged):
            await _asked(self._core.create_namespaced_event(namespace, event))

    async def close(self) -> None:
        await self._client.close()

    def _list_page(self, kind: str, namespace: str | None, arguments: dict[str, Any]) -> Any:
        plural = KIND_CLASSES[kind].definition.plural
        if namespace is None:
            return self._objects.list_cluster_custom_object(GROUP, VERSION, plural, **arguments)
        return self._objects.list_namespaced_custom_object(GROUP, VERSION, namespace, plural, **arguments)


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


def _place(key: Key) -> tuple[str, str, str, str]:
    return GROUP, VERSION, key.namespace, KIND_CLASSES[key.kind].definition.plural


def _typed(item: Raw, kind: str) -> Raw:
    """A listing may leave out what kind its items are."""
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, **item}


async def _asked(request: Awaitable[Any]) -> Raw:
    """Awaits a request and translates its errors."""
    try:
        answer: Raw = await request
    except ApiException as error:
        message = f"{error.status} {error.reason}: {str(error.body)[:500]}"
        if error.status in (404, 410):
            raise ObjectGone(message) from error
        if error.status == 409:
            raise ObjectChanged(message) from error
        if error.status in (401, 403):
            raise ApiForbidden(message) from error
        if error.status in (400, 422):
            raise ApiRefused(message) from error
        raise ApiUnavailable(message) from error
    except (ClientError, TimeoutError, OSError) as error:
        raise ApiUnavailable(f"{type(error).__name__}: {error}") from error
    return answer
