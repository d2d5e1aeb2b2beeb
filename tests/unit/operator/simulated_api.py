"""An API server in memory, behind the operator's seam: versions, uids, finalizers, listings, watches and their faults."""

import asyncio
import copy
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from controller_operator.kubernetes.object_api import (
    RENEWED_IN_EVENTS,
    ApiError,
    ApiUnavailable,
    ConfigMap,
    Listing,
    ObjectChanged,
    ObjectGone,
    VersionExpired,
)
from controller_operator.kubernetes.object_store import Key, ObjectStore, Raw, key_of
from controller_operator.resources import KINDS
from controller_operator.resources.crds import custom_resource_definition

SCHEMAS: dict[str, Raw] = {
    definition["spec"]["names"]["kind"]: definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for definition in map(custom_resource_definition, KINDS)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An event of a watch: ADDED, MODIFIED or DELETED, or BOOKMARK if only time passed."""

    type: str
    raw: Raw

    @property
    def version(self) -> str:
        return str(self.raw["metadata"]["resourceVersion"])


class SimulatedApiServer:
    """Keeps objects and all that happened to them. `missing_kinds` are those whose definitions are not installed."""

    def __init__(self) -> None:
        self.objects: dict[Key, Raw] = {}
        self._log: list[Change] = []
        self._oldest = 0
        self._restarts = 0
        self._versions = count(1)
        self._uids = count(1)
        self._happened = asyncio.Condition()
        self._watches: set[asyncio.Task[Any]] = set()
        self.missing_kinds: set[str] = set()
        self.dropped: dict[str, str] = {}
        """By kind, a field that its definition does not name: no client sees it, and any write drops it."""
        self.deletion_timestamp = "2026-01-01T00:00:00Z"
        """The timestamp of objects that are deleted from now on."""
        self.faults: deque[ApiError] = deque()
        """The errors of the next watches, one each. A watch raises its error when it has delivered all events."""
        self.requests: Counter[str] = Counter()
        self.watched_from: list[str] = []
        self.events: list[Raw] = []
        self.status_patches: list[tuple[Key, Raw]] = []
        self.leftovers: dict[tuple[str, str], dict[str, str]] = {}
        """The records about leftovers, by the namespace and the name of the ConfigMap, and by entry."""
        self.ending_namespaces: set[str] = set()
        """The namespaces that are being deleted."""
        self.config_maps: dict[tuple[str, str], ConfigMap] = {}
        """The records of throttles, by the namespace and the name of the ConfigMap."""
        self.before_listing_arrives: Callable[[], Awaitable[None]] | None = None
        """Happens between the moment that a listing shows and its arrival."""
        self.before_answer: Callable[[str, Key], Awaitable[None]] | None = None
        """Happens between a write and its answer."""

    # Actions of users

    async def apply(self, raw: Raw) -> Raw:
        """Creates the object, or replaces its spec and annotations."""
        key = key_of(raw)
        known = self.objects.get(key)
        if known is None:
            return await self._add(raw)
        changed = {**deepcopy(known), "spec": deepcopy(raw["spec"])}
        changed["metadata"]["generation"] += known["spec"] != raw["spec"]
        changed["metadata"]["annotations"] = raw["metadata"].get("annotations", {})
        return await self._store("MODIFIED", changed)

    async def keep(self, raw: Raw) -> Raw:
        """Store the object as it is given, whatever it was before."""
        return await self._store("MODIFIED" if key_of(raw) in self.objects else "ADDED", deepcopy(raw))

    async def remove(self, key: Key) -> None:
        """Delete the object, or mark it if it has a finalizer."""
        known = deepcopy(self.objects[key])
        if known["metadata"].get("finalizers"):
            known["metadata"].setdefault("deletionTimestamp", self.deletion_timestamp)
            await self._store("MODIFIED", known)
        else:
            await self._store("DELETED", known)

    async def date_deletion(self, key: Key, timestamp: str) -> None:
        changed = deepcopy(self.objects[key])
        changed["metadata"]["deletionTimestamp"] = timestamp
        await self._store("MODIFIED", changed)

    async def compact(self) -> None:
        """Forget the history: a client that wants to go on from an old version must list again."""
        self._oldest = len(self._log)

    async def restart(self) -> None:
        """Cuts every watch before it has seen the latest, and forgets the history."""
        self._restarts += 1
        await self.compact()
        async with self._happened:
            self._happened.notify_all()

    async def bookmark(self, kind: str) -> None:
        raw = {"kind": kind, "metadata": {"resourceVersion": str(next(self._versions))}}
        await self._tell(Change(type="BOOKMARK", raw=raw))

    def peek(self, key: Key) -> Raw | None:
        return self.objects.get(key)

    def all(self, kind: str) -> list[Raw]:
        return [raw for key, raw in self.objects.items() if key.kind == kind]

    def is_held_by(self, store: ObjectStore, kind: str | None = None) -> bool:
        """Return True if a store holds exactly the present objects of a kind, or of all kinds."""
        there = {_uid_and_version(raw) for key, raw in self.objects.items() if kind in (None, key.kind)}
        held = [stored for key in store.keys(kind) if (stored := store.get(key))]
        return there == {(each.uid, each.version) for each in held}

    # the seam

    async def list_all(self, kind: str, namespace: str | None) -> Listing:
        self._ask("list", kind)
        items = [self._show(raw) for key, raw in self.objects.items() if _is_of(key, kind, namespace)]
        version = str(next(self._versions))
        if self.before_listing_arrives is not None:
            await self.before_listing_arrives()
        return Listing(items=items, version=version)

    async def pages(self, kind: str, namespace: str | None) -> AsyncGenerator[Listing, None]:
        """Two objects at a time."""
        listing = await self.list_all(kind, namespace)
        for first in range(0, max(1, len(listing.items)), 2):
            yield Listing(items=listing.items[first : first + 2], version=listing.version)

    @asynccontextmanager
    async def watch(self, kind: str, namespace: str | None, version: str) -> AsyncIterator[AsyncIterator[Change]]:
        self._ask("watch", kind)
        self.watched_from.append(version)
        yield self._changes(kind, namespace, int(version))

    async def get(self, key: Key) -> Raw:
        self._ask("get", key.kind)
        return self._show(self._find(key))

    async def patch_status(self, raw: Raw, patch: Raw) -> Raw:
        self._ask("patch_status", raw["kind"])
        changed = deepcopy(self._same(raw))
        changed["status"] = _merge(changed.get("status", {}), patch)
        self.status_patches.append((key_of(raw), patch))
        return await self._answer("patch_status", await self._store("MODIFIED", changed))

    async def patch_known_spec(self, raw: Raw, patch: Raw) -> Raw:
        self._ask("patch_known_spec", raw["kind"])
        changed = deepcopy(self._same(raw))
        changed["spec"] = _merge(changed["spec"], patch)
        changed["metadata"]["generation"] += changed["spec"] != raw["spec"]
        return await self._answer("patch_known_spec", await self._store("MODIFIED", changed))

    async def set_finalizers(self, raw: Raw, finalizers: list[str]) -> Raw:
        self._ask("set_finalizers", raw["kind"])
        changed = deepcopy(self._same(raw))
        changed["metadata"]["finalizers"] = list(finalizers)
        is_over = not finalizers and "deletionTimestamp" in changed["metadata"]
        return await self._answer("set_finalizers", await self._store("DELETED" if is_over else "MODIFIED", changed))

    async def create(self, raw: Raw) -> Raw:
        self._ask("create", raw["kind"])
        if key_of(raw) in self.objects:
            raise ObjectChanged("it is there already")
        return await self._answer("create", await self._add(raw))

    async def delete(self, raw: Raw) -> None:
        self._ask("delete", raw["kind"])
        if self._same(raw)["metadata"]["uid"] != raw["metadata"]["uid"]:
            raise ObjectChanged("another uid")
        await self.remove(key_of(raw))

    async def read_served_kinds(self) -> frozenset[str]:
        self.requests["served_kinds"] += 1
        return frozenset(SCHEMAS.keys() - self.missing_kinds)

    async def schemas(self) -> Mapping[str, Raw]:
        self.requests["schemas"] += 1
        return {kind: _drop_field(schema, self.dropped.get(kind)) for kind, schema in SCHEMAS.items()}

    async def is_ending(self, namespace: str) -> bool:
        self.requests["is_ending"] += 1
        return namespace in self.ending_namespaces

    async def create_event(self, namespace: str, event: Raw) -> None:
        self.requests["create_event"] += 1
        known = next((each for each in self.events if each["metadata"]["name"] == event["metadata"]["name"]), None)
        if known is None:
            self.events.append(copy.deepcopy(event))
        elif event["count"] > 1:
            known.update({name: event[name] for name in RENEWED_IN_EVENTS})

    async def keep_leftover(self, namespace: str, name: str, entry: str, text: str) -> None:
        self.leftovers.setdefault((namespace, name), {})[entry] = text

    async def read_config_map(self, namespace: str, name: str) -> ConfigMap | None:
        return self.config_maps.get((namespace, name))

    async def write_entry(self, namespace: str, name: str, entry: str, text: str | None, known: str | None) -> None:
        present = self.config_maps.get((namespace, name))
        if (present.version if present else None) != known:
            raise ObjectChanged("409 it has changed")
        entries = {**(present.entries if present else {}), entry: text}
        self.config_maps[namespace, name] = ConfigMap(
            version=str(next(self._versions)), entries={at: each for at, each in entries.items() if each is not None}
        )

    # within

    def _ask(self, verb: str, kind: str) -> None:
        self.requests[verb] += 1
        if kind in self.missing_kinds:
            raise ObjectGone(f"404 no kind {kind}")

    def _find(self, key: Key) -> Raw:
        if key not in self.objects:
            raise ObjectGone(f"404 no {key}")
        return self.objects[key]

    def _same(self, raw: Raw) -> Raw:
        known = self._find(key_of(raw))
        if known["metadata"]["resourceVersion"] != raw["metadata"]["resourceVersion"]:
            raise ObjectChanged("409 it has changed")
        return self._show(known)

    def _show(self, raw: Raw) -> Raw:
        shown = deepcopy(raw)
        shown.get("spec", {}).pop(self.dropped.get(raw["kind"]), None)
        return shown

    async def _answer(self, verb: str, raw: Raw) -> Raw:
        if self.before_answer is not None:
            await self.before_answer(verb, key_of(raw))
        return raw

    async def _add(self, raw: Raw) -> Raw:
        defaults = {"uid": f"uid-{next(self._uids)}", "generation": 1, "creationTimestamp": "2025-01-01T00:00:00Z"}
        metadata = {**raw["metadata"], **defaults}
        return await self._store(
            "ADDED", {**deepcopy(raw), "status": raw.get("status") or {"observedGeneration": -1}, "metadata": metadata}
        )

    async def _store(self, type_: str, raw: Raw) -> Raw:
        raw["metadata"]["resourceVersion"] = str(next(self._versions))
        self.objects[key_of(raw)] = raw
        if type_ == "DELETED":
            del self.objects[key_of(raw)]
        await self._tell(Change(type=type_, raw=deepcopy(raw)))
        return deepcopy(raw)

    async def _tell(self, change: Change) -> None:
        self._log.append(change)
        async with self._happened:
            self._happened.notify_all()

    async def interrupt(self, error: ApiError) -> None:
        """The next watch that looks fails with this."""
        self.faults.append(error)
        async with self._happened:
            self._happened.notify_all()

    async def _changes(self, kind: str, namespace: str | None, version: int) -> AsyncIterator[Change]:
        position = next((at for at, each in enumerate(self._log) if int(each.version) > version), len(self._log))
        if position < self._oldest:
            raise VersionExpired("410 too old")
        restarts = self._restarts
        while True:
            while position < len(self._log) and restarts == self._restarts:
                change = self._log[position]
                position += 1
                if change.raw["kind"] == kind and (
                    change.type == "BOOKMARK" or _is_of(key_of(change.raw), kind, namespace)
                ):
                    yield replace(change, raw=self._show(change.raw))
            if restarts != self._restarts:
                raise ApiUnavailable("the API server restarts")
            if self.faults:
                raise self.faults.popleft()
            async with self._happened:
                if position == len(self._log) and not self.faults and restarts == self._restarts:
                    await self._happened.wait()


def _drop_field(schema: Raw, field: str | None) -> Raw:
    spec = schema["properties"]["spec"]
    known = {name: inner for name, inner in spec["properties"].items() if name != field}
    return {"properties": {**schema["properties"], "spec": {**spec, "properties": known}}}


def _uid_and_version(raw: Raw) -> tuple[str, str]:
    return raw["metadata"]["uid"], raw["metadata"]["resourceVersion"]


def _is_of(key: Key, kind: str, namespace: str | None) -> bool:
    return key.kind == kind and namespace in (None, key.namespace)


def _merge(before: Raw, patch: Raw) -> Raw:
    """A JSON merge patch (RFC 7386) applied."""
    after = dict(before)
    for name, value in patch.items():
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            after[name] = _merge(after[name] if isinstance(after.get(name), dict) else {}, value)
        else:
            after[name] = value
    return after
