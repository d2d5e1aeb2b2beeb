"""Writes to the API server that only the leader may make.

Each write is also conditional on the version that the decision is based on, or on the absence of the object to create.
So a write that is sent at the moment in which the lease is lost changes nothing that the next leader has touched."""

from collections.abc import AsyncGenerator, Mapping

from controller_operator.kubernetes.object_api import ConfigMap, Listing, ObjectApi
from controller_operator.kubernetes.object_store import Key, Raw
from controller_operator.leading.leadership import Leadership


class FencedObjects:
    """An `ObjectApi` whose writes raise `NotLeading` if this process does not lead."""

    def __init__(self, api: ObjectApi, leadership: Leadership) -> None:
        self._api = api
        self._leadership = leadership

    async def list_all(self, kind: str, namespace: str | None) -> Listing:
        return await self._api.list_all(kind, namespace)

    def pages(self, kind: str, namespace: str | None) -> AsyncGenerator[Listing, None]:
        return self._api.pages(kind, namespace)

    async def read_served_kinds(self) -> frozenset[str]:
        return await self._api.read_served_kinds()

    async def get(self, key: Key) -> Raw:
        return await self._api.get(key)

    async def schemas(self) -> Mapping[str, Raw]:
        return await self._api.schemas()

    async def is_ending(self, namespace: str) -> bool:
        return await self._api.is_ending(namespace)

    async def patch_status(self, raw: Raw, patch: Raw) -> Raw:
        self._leadership.require()
        return await self._api.patch_status(raw, patch)

    async def patch_known_spec(self, raw: Raw, patch: Raw) -> Raw:
        self._leadership.require()
        return await self._api.patch_known_spec(raw, patch)

    async def set_finalizers(self, raw: Raw, finalizers: list[str]) -> Raw:
        self._leadership.require()
        return await self._api.set_finalizers(raw, finalizers)

    async def create(self, raw: Raw) -> Raw:
        self._leadership.require()
        return await self._api.create(raw)

    async def delete(self, raw: Raw) -> None:
        self._leadership.require()
        await self._api.delete(raw)

    async def create_event(self, namespace: str, event: Raw) -> None:
        self._leadership.require()
        await self._api.create_event(namespace, event)

    async def keep_leftover(self, namespace: str, name: str, entry: str, text: str) -> None:
        self._leadership.require()
        await self._api.keep_leftover(namespace, name, entry, text)

    async def read_config_map(self, namespace: str, name: str) -> ConfigMap | None:
        return await self._api.read_config_map(namespace, name)

    async def write_entry(self, namespace: str, name: str, entry: str, text: str | None, known: str | None) -> None:
        self._leadership.require()
        await self._api.write_entry(namespace, name, entry, text, known)
