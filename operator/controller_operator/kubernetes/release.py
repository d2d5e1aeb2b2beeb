"""Releases all objects, for an uninstallation of the operator.

Nothing else removes the operator's finalizer from an object. With it the object, its definition and its namespace could
never be deleted. Nothing is done to a Kafka cluster: topics and features stay as they are, whatever the
`deletionPolicy`. A running operator would restore the finalizer, so it must have ended before.
"""

from collections.abc import AsyncIterator, Collection

from controller_operator.kubernetes.object_api import ObjectApi, ObjectChanged, ObjectGone
from controller_operator.kubernetes.object_store import KIND_CLASSES, Key, Raw, key_of
from controller_operator.resources.common import FINALIZER


async def release_all(api: ObjectApi, namespaces: Collection[str]) -> AsyncIterator[Key]:
    """Remove the finalizer from every object in the namespaces; default: all namespaces. Yield each object that had it.

    A kind that the API server does not know has no objects. Raises `ApiRefused` and `ApiUnavailable`."""
    for kind in KIND_CLASSES:
        for namespace in namespaces or (None,):
            for raw in await _objects(api, kind, namespace):
                if await _release(api, raw):
                    yield key_of(raw)


async def _objects(api: ObjectApi, kind: str, namespace: str | None) -> list[Raw]:
    try:
        return (await api.list_all(kind, namespace)).items
    except ObjectGone:
        return []


async def _release(api: ObjectApi, raw: Raw) -> bool:
    """Remove the finalizer. Return False if the object did not have it, or is gone."""
    while True:
        held = raw["metadata"].get("finalizers", [])
        if FINALIZER not in held:
            return False
        try:
            await api.set_finalizers(raw, [each for each in held if each != FINALIZER])
        except ObjectGone:
            return False
        except ObjectChanged:
            try:
                raw = await api.get(key_of(raw))
            except ObjectGone:
                return False
        else:
            return True
