"""The API server in memory, over HTTP: discovery, listings in pages and watches, as kopf asks for them."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

from controller_operator.kubernetes.object_api import ApiError, VersionExpired
from controller_operator.kubernetes.object_store import KIND_CLASSES
from controller_operator.resources.common import GROUP, VERSION
from tests.unit.operator.simulated_api import SimulatedApiServer

_KINDS = {kind.definition.plural: name for name, kind in KIND_CLASSES.items()}


@dataclass
class HttpApi:
    """Serves the objects of a simulated API server over HTTP, and fails on demand."""

    api: SimulatedApiServer = field(default_factory=SimulatedApiServer)
    faults: deque[int] = field(default_factory=deque)
    """Statuses with which the next listings and watches are answered."""
    requests: list[tuple[str, str]] = field(default_factory=list)
    """Methods and paths, with queries."""
    port: int = 0
    token: str = "one"
    """The token with which clients must log in from now on."""
    tokens: list[str] = field(default_factory=list)
    """The token of each request."""
    _hurry: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def configuration(self) -> Configuration:
        def refresh(refreshed: Any) -> None:
            refreshed.api_key["BearerToken"] = self.token

        configuration: Any = Configuration(host=f"http://127.0.0.1:{self.port}")
        configuration.refresh_api_key_hook = refresh
        configuration.api_key = {"BearerToken": ""}
        configuration.api_key_prefix = {"BearerToken": "Bearer"}
        return configuration  # type: ignore[no-any-return]  # the hook is typed as None

    def count_requests(self, part: str) -> int:
        """Return the number of requests with this text in their path."""
        return sum(part in path for _, path in self.requests)

    async def end_watches(self) -> None:
        """End all watches, as the API server does after a time."""
        self._hurry.set()
        await asyncio.sleep(0)
        self._hurry = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        self.tokens.append(request.headers.get("Authorization", ""))
        match request.path.strip("/").split("/"):
            case ["api"]:
                return web.json_response({"versions": ["v1"]})
            case ["api", "v1"]:
                return web.json_response({"resources": [_resource("namespaces", "Namespace", is_namespaced=False)]})
            case ["apis"]:
                version = {"version": VERSION}
                group = {"name": GROUP, "versions": [version], "preferredVersion": version}
                return web.json_response({"groups": [group]})
            case ["apis", _, _]:
                served = [(name, kind) for name, kind in _KINDS.items() if kind not in self.api.missing_kinds]
                return web.json_response({"resources": [_resource(*each, is_namespaced=True) for each in served]})
            case ["apis", _, _, "namespaces", namespace, plural]:
                return await self._objects(request, _KINDS[plural], namespace)
            case ["apis", _, _, plural]:
                return await self._objects(request, _KINDS[plural], None)
            case _:
                return web.Response(status=404)

    async def _objects(self, request: web.Request, kind: str, namespace: str | None) -> web.StreamResponse:
        if self.faults:
            return web.json_response({"kind": "Status", "message": "as told"}, status=self.faults.popleft())
        if kind in self.api.missing_kinds:
            return web.Response(status=404)
        if "watch" in request.query:
            return await self._watch(request, kind, namespace)
        if "continue" in request.query:
            first, version = map(int, request.query["continue"].split("-"))
            items = [raw for raw in self.api.all(kind) if namespace in (None, raw["metadata"]["namespace"])]
        else:
            listing = await self.api.list_all(kind, namespace)
            first, version, items = 0, int(listing.version), listing.items
        last = first + 2
        metadata = {"resourceVersion": str(version), "continue": f"{last}-{version}" if last < len(items) else ""}
        return web.json_response({"kind": f"{kind}List", "metadata": metadata, "items": items[first:last]})

    async def _watch(self, request: web.Request, kind: str, namespace: str | None) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        pouring = asyncio.create_task(self._pour(response, kind, namespace, request.query["resourceVersion"]))
        ending = asyncio.create_task(self._hurry.wait())
        await asyncio.wait(
            (pouring, ending), timeout=float(request.query["timeoutSeconds"]), return_when=asyncio.FIRST_COMPLETED
        )
        for task in (pouring, ending):
            task.cancel()
        await asyncio.gather(pouring, ending, return_exceptions=True)
        return response

    async def _pour(self, response: web.StreamResponse, kind: str, namespace: str | None, version: str) -> None:
        async def say(type_: str, what: Any) -> None:
            await response.write(json.dumps({"type": type_, "object": what}).encode() + b"\n")

        try:
            async with self.api.watch(kind, namespace, version) as changes:
                async for change in changes:
                    await say(change.type, change.raw)
        except VersionExpired:
            await say("ERROR", {"code": 410, "message": "too old resource version"})
        except ApiError:
            return


@asynccontextmanager
async def http_api() -> AsyncIterator[HttpApi]:
    """A simulated API server that is served."""
    served = HttpApi()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    served.port = runner.addresses[0][1]
    try:
        yield served
    finally:
        with suppress(asyncio.TimeoutError):
            await served.end_watches()
        await runner.cleanup()


def _resource(plural: str, kind: str, *, is_namespaced: bool) -> dict[str, Any]:
    verbs = ["list", "watch", "patch", "get"]
    return {"name": plural, "singularName": kind.lower(), "kind": kind, "namespaced": is_namespaced, "verbs": verbs}
