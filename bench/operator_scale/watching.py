"""The objects as a user with a watch sees them: which are Ready for their specs, and how old the cluster's status is."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import orjson
from aiohttp import ClientError
from kubernetes.aio.client.api_client import ApiClient

from bench.operator_scale.surroundings import NAMESPACE
from controller_operator.kubernetes.kubernetes_objects import objects_path
from controller_operator.kubernetes.object_api import ObjectApi

_WAIT_S: Final = 600.0
_BETWEEN_WATCHES_S: Final = 0.1
_GONE: Final = 410


class Watching:
    """Follows KafkaTopics and the KafkaCluster; run `run` for each kind in a task."""

    def __init__(self, api: ObjectApi, client: ApiClient) -> None:
        self._api = api
        self._client = client
        self._changed = asyncio.Condition()
        self.ready: dict[str, int] = {}
        """The generation for which a topic was Ready last, by name."""
        self.said_topics = 0
        """The number of topics in the KafkaCluster's status."""

    async def run(self, kind: str) -> None:
        """Follow the objects of a kind forever."""
        while True:
            version = ""
            async for page in self._api.pages(kind, NAMESPACE):
                version = page.version
                for each in page.items:
                    await self._take(each)
            await self._follow(kind, version)

    async def _follow(self, kind: str, version: str) -> None:
        """Follow changes from a version on, and resume when the API server ends the watch, at the latest after some
        minutes.

        A new list of thousands of objects would take seconds in which changes are missed, and would count as the
        operator's. Returns if the version is too old.
        """
        while True:
            try:
                async for change in self._changes(kind, version):
                    if change["type"] == "ERROR" and change["object"]["code"] == _GONE:
                        return
                    if change["type"] in ("ADDED", "MODIFIED"):
                        await self._take({"kind": kind, **change["object"]})
                    version = change["object"]["metadata"]["resourceVersion"]
            except (ClientError, TimeoutError) as error:
                sys.stderr.write(f"the watch of {kind} ends, and goes on: {error}\n")
            await asyncio.sleep(_BETWEEN_WATCHES_S)

    async def _changes(self, kind: str, version: str) -> AsyncIterator[dict[str, Any]]:
        query = [("watch", "true"), ("resourceVersion", version), ("allowWatchBookmarks", "true")]
        parameters = await self._client.param_serialize(
            "GET", objects_path(kind, NAMESPACE), query_params=query, auth_settings=["BearerToken"]
        )
        answer: Any = await self._client.call_api(*parameters)
        async with answer.response as response:
            response.raise_for_status()
            async for line in response.content:
                yield orjson.loads(line)

    async def wait_until(self, condition: Callable[[], bool], deadline_s: float = _WAIT_S) -> None:
        """Wait until the condition is true of the seen objects. Raises TimeoutError."""
        async with asyncio.timeout(deadline_s), self._changed:
            await self._changed.wait_for(condition)

    async def _take(self, raw: dict[str, Any]) -> None:
        if raw["kind"] == "KafkaCluster":
            self.said_topics = int(raw.get("status", {}).get("counts", {}).get("topics", 0))
        elif (generation := ready_generation(raw)) is not None:
            self.ready[raw["metadata"]["name"]] = generation
        else:
            self.ready.pop(raw["metadata"]["name"], None)
        async with self._changed:
            self._changed.notify_all()


def ready_generation(raw: dict[str, Any]) -> int | None:
    """Return the generation of the spec for which an object is Ready; None if it is not."""
    for condition in raw.get("status", {}).get("conditions", ()):
        if condition["type"] == "Ready" and condition["status"] == "True":
            return int(condition["observedGeneration"])
    return None


class Staleness:
    """The age of a reported number that only grows: the time since the real number was at most the reported one."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []
        self.worst_s = 0.0

    def look(self, now_s: float, real: int, said: int) -> None:
        """Compare both numbers. Call it often: the result is only as exact as the time between two calls."""
        self._seen.append((now_s, real))
        while len(self._seen) > 1 and self._seen[1][1] <= said:
            self._seen.pop(0)
        if real > said:
            was_true_s = self._seen[0][0]
            self.worst_s = max(self.worst_s, now_s - was_true_s)
        else:
            del self._seen[:-1]
