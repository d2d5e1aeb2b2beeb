"""`ObjectApi` on a real API server: every request has a time to be answered in, and watches have connections of their own.

The library's errors are those of the seam from here on.
"""

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import kubernetes_asyncio.client as kubernetes
import orjson
from aiohttp import ClientError, ClientTimeout, StreamReader
from kubernetes_asyncio.client.exceptions import ApiException

from controller_operator.kubernetes.api_client import api_client
from controller_operator.kubernetes.json_lines import json_lines
from controller_operator.kubernetes.object_api import (
    ApiError,
    ApiForbidden,
    ApiRefused,
    ApiUnavailable,
    Change,
    Listing,
    ObjectChanged,
    ObjectGone,
    VersionExpired,
)
from controller_operator.kubernetes.object_store import KIND_CLASSES, Key, Raw, key_of
from controller_operator.resources.common import GROUP, VERSION

_PAGE: Final = 200
"""A page of topics with partitions is some megabytes, which are read as JSON in one go."""
_MERGE: Final = "application/merge-patch+json"
_ANSWER_S: Final = 60
_CONNECT_S: Final = 30
_WATCH_S: Final = 290
"""The API server ends a watch after that; a connection that died unseen is given up soon afterwards."""


class KubernetesObjects:
    """`ObjectApi` on a real API server."""

    def __init__(self) -> None:
        self._client = api_client()
        # Untyped: the generated signatures lack the client's own keywords, and ask for models where JSON is taken.
        self._objects: Any = kubernetes.CustomObjectsApi(self._client)
        self._core: Any = kubernetes.CoreV1Api(self._client)
        # Watches last: on connections of their own they leave those of the requests free, however many there are.
        self._watch_client = api_client(connections=0)
        self._watched: Any = kubernetes.CustomObjectsApi(self._watch_client)

    async def list_all(self, kind: str, namespace: str | None) -> Listing:
        pages = [page async for page in self.pages(kind, namespace)]
        return Listing(items=[item for page in pages for item in page.items], version=pages[-1].version)

    async def pages(self, kind: str, namespace: str | None) -> AsyncIterator[Listing]:
        token = ""
        while True:
            arguments = {"limit": _PAGE, "_request_timeout": _ANSWER_S, **({"_continue": token} if token else {})}
            page = await asked(_list_request(self._objects, kind, namespace, arguments))
            token = page["metadata"].get("continue", "")
            yield Listing(
                items=[_typed(item, kind) for item in page["items"]], version=page["metadata"]["resourceVersion"]
            )
            if not token:
                return

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
        response: Any = await asked(_list_request(self._watched, kind, namespace, arguments))
        async with response:
            if response.status != 200:
                raise _error(response.status, (await response.text())[:500])
            yield _changes(response.content, kind)

    async def get(self, key: Key) -> Raw:
        return await _answered(
            self._objects.get_namespaced_custom_object(*_place(key), key.name, _request_timeout=_ANSWER_S)
        )

    async def patch_status(self, raw: Raw, patch: Raw) -> Raw:
        key = key_of(raw)
        body = {"metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]}, "status": patch}
        return await _answered(
            self._objects.patch_namespaced_custom_object_status(
                *_place(key), key.name, body, _content_type=_MERGE, _request_timeout=_ANSWER_S
            )
        )

    async def set_finalizers(self, raw: Raw, finalizers: list[str]) -> Raw:
        metadata = {"resourceVersion": raw["metadata"]["resourceVersion"], "finalizers": finalizers}
        return await self._merge(key_of(raw), {"metadata": metadata})

    async def annotate(self, key: Key, annotations: dict[str, str | None]) -> Raw:
        """Sets annotations, and takes away those without a value."""
        return await self._merge(key, {"metadata": {"annotations": annotations}})

    async def patch_spec(self, key: Key, spec: Raw) -> Raw:
        """Applies a merge patch to the spec, whatever version the object has."""
        return await self._merge(key, {"spec": spec})

    async def _merge(self, key: Key, body: Raw) -> Raw:
        return await _answered(
            self._objects.patch_namespaced_custom_object(
                *_place(key), key.name, body, _content_type=_MERGE, _request_timeout=_ANSWER_S
            )
        )

    async def create(self, raw: Raw) -> Raw:
        return await _answered(
            self._objects.create_namespaced_custom_object(*_place(key_of(raw)), raw, _request_timeout=_ANSWER_S)
        )

    async def dry_run(self, raw: Raw) -> None:
        """What `create` raises, without creating anything."""
        await asked(self._objects.create_namespaced_custom_object(*_place(key_of(raw)), raw, dry_run="All"))

    async def served_kinds(self) -> frozenset[str]:
        """The kinds of our group and version that the API server knows; `ObjectGone` where it knows neither."""
        found: Any = await asked(self._objects.get_api_resources(GROUP, VERSION))
        return frozenset(resource.kind for resource in found.resources)

    async def schemas(self) -> Mapping[str, Raw]:
        published = await asked(
            self._client.call_api(
                f"/openapi/v3/apis/{GROUP}/{VERSION}",
                "GET",
                header_params={"Accept": "application/json"},
                response_types_map={200: "object"},
                auth_settings=["BearerToken"],
                _return_http_data_only=True,
                _request_timeout=_ANSWER_S,
            )
        )
        schemas = published["components"]["schemas"].values()
        return {kind: schema for schema in schemas for kind in _kinds_of(schema) if kind in KIND_CLASSES}

    async def delete(self, raw: Raw) -> None:
        key = key_of(raw)
        metadata = raw["metadata"]
        known = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        options = {"preconditions": known, "propagationPolicy": "Background"}
        await asked(
            self._objects.delete_namespaced_custom_object(
                *_place(key), key.name, body=options, _request_timeout=_ANSWER_S
            )
        )

    async def create_event(self, namespace: str, event: Raw) -> None:
        with suppress(ObjectChanged):
            await asked(self._core.create_namespaced_event(namespace, event, _request_timeout=_ANSWER_S))

    async def close(self) -> None:
        await self._watch_client.close()
        await self._client.close()


def _kinds_of(schema: Raw) -> list[str]:
    kinds = schema.get("x-kubernetes-group-version-kind", ())
    return [each["kind"] for each in kinds if (each["group"], each["version"]) == (GROUP, VERSION)]


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
    """An object as it is kept: with its kind, which a listing may leave out of its items."""
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, **_kept(item)}


def _kept(item: Raw) -> Raw:
    """An object without the book of who set which field, which is longer than all else and of no use here."""
    return {**item, "metadata": {name: said for name, said in item["metadata"].items() if name != "managedFields"}}


async def _answered(request: Awaitable[Any]) -> Raw:
    """Awaits a request that is answered with an object."""
    return _kept(await asked(request))


async def asked(request: Awaitable[Any]) -> Raw:
    """Awaits a request of the library. Raises `ApiError`s in place of its errors."""
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
