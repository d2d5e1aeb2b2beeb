"""The Kubernetes seam: all that the operator asks of the API server.

Statuses are written as merge patches of what differs, and finalizers as a whole; both only over the version of the object
that they were decided on. `ObjectApi` is what the operator needs, `KubernetesObjects` is the real thing.
"""

from collections.abc import AsyncIterator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol

import kubernetes_asyncio.client as kubernetes
import orjson
from aiohttp import ClientError, ClientTimeout, StreamReader
from kubernetes_asyncio.client.exceptions import ApiException

from controller_operator.kubernetes.json_lines import json_lines
from controller_operator.kubernetes.object_store import KIND_CLASSES, Key, Raw, key_of
from controller_operator.resources.common import GROUP, VERSION

_PAGE: Final = 500
_MERGE: Final = "application/merge-patch+json"
_ANSWER_S: Final = 60
_CONNECT_S: Final = 30
_WATCH_S: Final = 290
"""The API server ends a watch after that; a connection that died unseen is given up soon afterwards."""


class ApiError(Exception):
    """The API server did not do what it was asked for."""


class ObjectGone(ApiError):
    """There is no such object (any more)."""


class ObjectChanged(ApiError):
    """The object is not as it was known: look at it again. Also: it is there already."""


class ApiUnavailable(ApiError):
    """The API server does not answer, or cannot now. Retriable."""


class VersionExpired(ApiUnavailable):
    """What a watch or the next page of a listing would go on from is too old: list again."""


class ApiRefused(ApiError):
    """The API server refuses: rights are missing, or a schema forbids it. Retried slowly; a person has to act."""


class ApiForbidden(ApiRefused):
    """Rights are missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All objects of a kind at one version, the newest that there was when the listing was asked for."""

    items: list[Raw]
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a watch saw."""

    type: str
    """ADDED, MODIFIED or DELETED; BOOKMARK where only time went by."""
    raw: Raw

    @property
    def version(self) -> str:
        return str(self.raw["metadata"]["resourceVersion"])


class ObjectApi(Protocol):
    """What the operator does with objects. Every method raises `ApiError`s."""

    async def list_all(self, kind: str, namespace: str | None) -> Listing:
        """All objects of a kind, in a namespace or (None) everywhere."""
        ...

    def watch(
        self, kind: str, namespace: str | None, version: str
    ) -> AbstractAsyncContextManager[AsyncIterator[Change]]:
        """Gives, once the API server agrees, every change after a version until it ends the watch.

        Raises `VersionExpired`, at once or between two changes."""
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
        # Watches last: on connections of their own they leave those of the requests free, however many there are.
        configuration: Any = kubernetes.Configuration.get_default_copy()
        configuration.connection_pool_maxsize = 0
        self._watch_client = kubernetes.ApiClient(configuration)
        self._watched: Any = kubernetes.CustomObjectsApi(self._watch_client)

    async def list_all(self, kind: str, namespace: str | None) -> Listing:
        items: list[Raw] = []
        token = ""
        while True:
            arguments = {"limit": _PAGE, "_request_timeout": _ANSWER_S, **({"_continue": token} if token else {})}
            page = await _asked(_list_request(self._objects, kind, namespace, arguments))
            items.extend(_typed(item, kind) for item in page["items"])
            token = page["metadata"].get("continue", "")
            if not token:
                return Listing(items=items, version=page["metadata"]["resourceVersion"])

    @asynccontextmanager
    async def watch(self, kind: str, namespace: str | None, version: str) -> AsyncIterator[AsyncIterator[Change]]:
        arguments = {
            "watch": True,
            "resource_version": version,
            "allow_watch_bookmarks": True,
            "timeout_seconds": _WATCH_S,
            "_preload_content": False,
            "_request_timeout": ClientTimeout(total=_WATCH_S + _CONNECT_S, sock_connect=_CONNECT_S),
        }
        response: Any = await _asked(_list_request(self._watched, kind, namespace, arguments))
        async with response:
            if response.status != 200:
                raise _error(response.status, (await response.text())[:500])
            yield _changes(response.content, kind)

    async def get(self, key: Key) -> Raw:
        return await _asked(
            self._objects.get_namespaced_custom_object(*_place(key), key.name, _request_timeout=_ANSWER_S)
        )

    async def patch_status(self, raw: Raw, patch: Raw) -> Raw:
        key = key_of(raw)
        body = {"metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]}, "status": patch}
        return await _asked(
            self._objects.patch_namespaced_custom_object_status(
                *_place(key), key.name, body, _content_type=_MERGE, _request_timeout=_ANSWER_S
            )
        )

    async def set_finalizers(self, raw: Raw, finalizers: list[str]) -> Raw:
        key = key_of(raw)
        body = {"metadata": {"resourceVersion": raw["metadata"]["resourceVersion"], "finalizers": finalizers}}
        return await _asked(
            self._objects.patch_namespaced_custom_object(
                *_place(key), key.name, body, _content_type=_MERGE, _request_timeout=_ANSWER_S
            )
        )

    async def create(self, raw: Raw) -> Raw:
        return await _asked(
            self._objects.create_namespaced_custom_object(*_place(key_of(raw)), raw, _request_timeout=_ANSWER_S)
        )

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
        await _asked(
            self._objects.delete_namespaced_custom_object(
                *_place(key), key.name, body=options, _request_timeout=_ANSWER_S
            )
        )

    async def create_event(self, namespace: str, event: Raw) -> None:
        with suppress(ObjectChanged):
            await _asked(self._core.create_namespaced_event(namespace, event, _request_timeout=_ANSWER_S))

    async def close(self) -> None:
        await self._watch_client.close()
        await self._client.close()


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


def _list_request(objects: Any, kind: str, namespace: str | None, arguments: dict[str, Any]) -> Any:
    plural = KIND_CLASSES[kind].definition.plural
    if namespace is None:
        return objects.list_cluster_custom_object(GROUP, VERSION, plural, **arguments)
    return objects.list_namespaced_custom_object(GROUP, VERSION, namespace, plural, **arguments)


async def _changes(content: StreamReader, kind: str) -> AsyncIterator[Change]:
    try:
        async for line in json_lines(content):
            yield _change(line, kind)
    except (ClientError, TimeoutError, OSError, orjson.JSONDecodeError) as error:
        raise ApiUnavailable(f"{type(error).__name__}: {error}") from error


def _change(line: bytes, kind: str) -> Change:
    seen = orjson.loads(line)
    if seen["type"] == "ERROR":
        raise _error(seen["object"].get("code", 500), str(seen["object"].get("message")))
    return Change(type=seen["type"], raw=_typed(seen["object"], kind))


def _typed(item: Raw, kind: str) -> Raw:
    """A listing may leave out what kind its items are."""
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, **item}


async def _asked(request: Awaitable[Any]) -> Raw:
    """Awaits a request and translates its errors."""
    try:
        answer: Raw = await request
    except ApiException as error:
        raise _error(error.status, f"{error.status} {error.reason}: {str(error.body)[:500]}") from error
    except (ClientError, TimeoutError, OSError) as error:
        raise ApiUnavailable(f"{type(error).__name__}: {error}") from error
    return answer


def _error(status: int, message: str) -> ApiError:
    """What an HTTP status means."""
    if status == 404:
        return ObjectGone(message)
    if status == 410:
        return VersionExpired(message)
    if status == 409:
        return ObjectChanged(message)
    if status in (401, 403):
        return ApiForbidden(message)
    if status in (400, 422):
        return ApiRefused(message)
    return ApiUnavailable(message)
