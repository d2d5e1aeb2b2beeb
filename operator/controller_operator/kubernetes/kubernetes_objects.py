"""`ObjectApi` on a real API server. The errors of the client become those of the seam in `api_client`."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from typing import Any, Final

from kubernetes.aio.client.configuration import Configuration

from controller_operator.kubernetes.api_client import MERGE_PATCH, ApiRequests
from controller_operator.kubernetes.leftovers import LEFTOVERS_LABEL, MOST_LEFTOVERS, Leftover
from controller_operator.kubernetes.object_api import RENEWED_IN_EVENTS, ConfigMap, Listing, ObjectChanged, ObjectGone
from controller_operator.kubernetes.object_store import KIND_CLASSES, Key, Raw, key_of
from controller_operator.resources.common import GROUP, VERSION

PAGE: Final = 200
"""Objects in a page. A page of topics with partitions has some megabytes, which are parsed as JSON at once."""
API_PATH: Final = f"/apis/{GROUP}/{VERSION}"


class KubernetesObjects:
    """`ObjectApi` on a real API server."""

    def __init__(self, configuration: Configuration) -> None:
        self._requests = ApiRequests(configuration)

    async def list_all(self, kind: str, namespace: str | None) -> Listing:
        pages = [page async for page in self.pages(kind, namespace)]
        return Listing(items=[item for page in pages for item in page.items], version=pages[-1].version)

    async def pages(self, kind: str, namespace: str | None) -> AsyncGenerator[Listing, None]:
        token = ""
        while True:
            query = {"limit": str(PAGE), **({"continue": token} if token else {})}
            page = await self._requests.ask("GET", objects_path(kind, namespace), query=query)
            token = page["metadata"].get("continue", "")
            yield Listing(
                items=[add_kind(item, kind) for item in page["items"]], version=page["metadata"]["resourceVersion"]
            )
            if not token:
                return

    async def get(self, key: Key) -> Raw:
        return _strip_managed_fields(await self._requests.ask("GET", _path_of(key)))

    async def patch_status(self, raw: Raw, patch: Raw) -> Raw:
        body = {"metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]}, "status": patch}
        return await self._merge(f"{_path_of(key_of(raw))}/status", body)

    async def patch_known_spec(self, raw: Raw, patch: Raw) -> Raw:
        body = {"metadata": {"resourceVersion": raw["metadata"]["resourceVersion"]}, "spec": patch}
        return await self._merge(_path_of(key_of(raw)), body)

    async def set_finalizers(self, raw: Raw, finalizers: list[str]) -> Raw:
        metadata = {"resourceVersion": raw["metadata"]["resourceVersion"], "finalizers": finalizers}
        return await self._merge(_path_of(key_of(raw)), {"metadata": metadata})

    async def annotate(self, key: Key, annotations: dict[str, str | None]) -> Raw:
        """Set annotations, and remove those without a value."""
        return await self._merge(_path_of(key), {"metadata": {"annotations": annotations}})

    async def patch_spec(self, key: Key, spec: Raw) -> Raw:
        """Apply a merge patch to the spec, whatever version the object has."""
        return await self._merge(_path_of(key), {"spec": spec})

    async def _merge(self, path: str, body: Raw) -> Raw:
        return _strip_managed_fields(await self._requests.ask("PATCH", path, body=body, content_type=MERGE_PATCH))

    async def create(self, raw: Raw) -> Raw:
        return await self._create(raw, {})

    async def dry_run(self, raw: Raw) -> None:
        """Raise the exceptions of `create` without creating anything."""
        await self._create(raw, {"dryRun": "All"})

    async def _create(self, raw: Raw, query: Mapping[str, str]) -> Raw:
        key = key_of(raw)
        path = objects_path(key.kind, key.namespace)
        return _strip_managed_fields(await self._requests.ask("POST", path, query=query, body=raw))

    async def read_served_kinds(self) -> frozenset[str]:
        try:
            found = await self._requests.ask("GET", API_PATH)
        except ObjectGone:
            return frozenset()
        return frozenset(resource["kind"] for resource in found["resources"]) & KIND_CLASSES.keys()

    async def schemas(self) -> Mapping[str, Raw]:
        published = await self._requests.ask("GET", f"/openapi/v3{API_PATH}")
        schemas = published["components"]["schemas"].values()
        return {kind: schema for schema in schemas for kind in _kinds_of(schema) if kind in KIND_CLASSES}

    async def delete(self, raw: Raw) -> None:
        metadata = raw["metadata"]
        known = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
        options = {"preconditions": known, "propagationPolicy": "Background"}
        await self._requests.ask("DELETE", _path_of(key_of(raw)), body=options)

    async def is_ending(self, namespace: str) -> bool:
        try:
            found = await self._requests.ask("GET", f"/api/v1/namespaces/{namespace}")
        except ObjectGone:
            return True
        return "deletionTimestamp" in found["metadata"]

    async def create_event(self, namespace: str, event: Raw) -> None:
        path = f"/api/v1/namespaces/{namespace}/events"
        try:
            await self._requests.ask("POST", path, body=event)
        except ObjectChanged:
            if event["count"] > 1:
                renewed = {name: event[name] for name in RENEWED_IN_EVENTS}
                with suppress(ObjectGone):
                    named = f"{path}/{event['metadata']['name']}"
                    await self._requests.ask("PATCH", named, body=renewed, content_type=MERGE_PATCH)

    async def keep_leftover(self, namespace: str, name: str, entry: str, text: str) -> None:
        maps, data = _config_maps_path(namespace), {entry: text}
        path = f"{maps}/{name}"
        try:
            kept = await self._requests.ask("PATCH", path, body={"data": data}, content_type=MERGE_PATCH)
        except ObjectGone:
            metadata = {"name": name, "labels": {LEFTOVERS_LABEL: "true"}}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
            kept = await self._requests.ask("POST", maps, body=body)
        if surplus := sorted(kept["data"])[:-MOST_LEFTOVERS]:
            fewer = {"data": dict.fromkeys(surplus)}
            await self._requests.ask("PATCH", path, body=fewer, content_type=MERGE_PATCH)

    async def read_config_map(self, namespace: str, name: str) -> ConfigMap | None:
        try:
            found = await self._requests.ask("GET", f"{_config_maps_path(namespace)}/{name}")
        except ObjectGone:
            return None
        return ConfigMap(version=found["metadata"]["resourceVersion"], entries=found.get("data") or {})

    async def write_entry(self, namespace: str, name: str, entry: str, text: str | None, known: str | None) -> None:
        maps, data = _config_maps_path(namespace), {entry: text}
        if known is None:
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
            await self._requests.ask("POST", maps, body=body)
        else:
            body = {"metadata": {"resourceVersion": known}, "data": data}
            await self._requests.ask("PATCH", f"{maps}/{name}", body=body, content_type=MERGE_PATCH)

    async def leftovers(self, namespace: str | None) -> list[Leftover]:
        """Return the records of a namespace's operators, or of all (None), the newest first."""
        within = "" if namespace is None else f"/namespaces/{namespace}"
        query = {"labelSelector": f"{LEFTOVERS_LABEL}=true"}
        found = await self._requests.ask("GET", f"/api/v1{within}/configmaps", query=query)
        entries = {
            f"{at} {key}": text
            for at, each in enumerate(found["items"])
            for key, text in (each.get("data") or {}).items()
        }
        return Leftover.all_of(entries)

    async def close(self) -> None:
        await self._requests.close()


def objects_path(kind: str, namespace: str | None) -> str:
    """Return the path of the objects of a kind, in a namespace or (None) everywhere."""
    plural = KIND_CLASSES[kind].definition.plural
    return f"{API_PATH}/{plural}" if namespace is None else f"{API_PATH}/namespaces/{namespace}/{plural}"


def _config_maps_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def add_kind(item: Raw, kind: str) -> Raw:
    """Return an object as it is stored, with its kind, because a listing may leave the kind out of its items."""
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, **_strip_managed_fields(item)}


def _path_of(key: Key) -> str:
    return f"{objects_path(key.kind, key.namespace)}/{key.name}"


def _kinds_of(schema: Raw) -> list[str]:
    kinds = schema.get("x-kubernetes-group-version-kind", ())
    return [each["kind"] for each in kinds if (each["group"], each["version"]) == (GROUP, VERSION)]


def _strip_managed_fields(item: Any) -> Raw:
    """Return an object without `managedFields`, which are longer than the rest and not needed."""
    return {**item, "metadata": {name: said for name, said in item["metadata"].items() if name != "managedFields"}}
