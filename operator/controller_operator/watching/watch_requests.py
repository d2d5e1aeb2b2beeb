"""Observes kopf's requests to the API server, to learn of listings, of troubles, and of the end of the watches.

No handler of kopf learns that a listing begins, ends or fails, or that a kind is gone. But its HTTP session can be
traced (`kopf.AiohttpSession` with an aiohttp `TraceConfig`), so this module looks at each request and answer.
"""

import asyncio
import time
from collections.abc import Collection
from types import SimpleNamespace
from typing import Final

import aiohttp
import orjson
import structlog
from yarl import URL

from controller_operator.kubernetes.kubernetes_objects import API_PATH
from controller_operator.kubernetes.object_intake import ObjectIntake, Stream
from controller_operator.kubernetes.object_store import KIND_CLASSES
from controller_operator.loop_thread import call_in
from controller_operator.watching.kopf_settings import CONNECT_S, LIST_S, LONGEST_BACKOFF_S, WATCH_S

GRACE_S: Final = 15.0
"""Seconds by which the next request of a stream may be late, for example on an overloaded machine."""
_SURVIVED: Final = frozenset({401, 403, 429})
"""Statuses after which kopf logs in or tries again. Any other one below 500 ends it."""
_NOT_FOUND: Final = 404
_KINDS: Final = {kind.definition.plural: name for name, kind in KIND_CLASSES.items()}
_log = structlog.get_logger(__name__)


class WatchRequests:
    """Observes the requests of some streams. kopf's thread calls it, and the operator's thread queries it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, intake: ObjectIntake, streams: Collection[Stream]) -> None:
        """`loop` is that of the intake."""
        self._loop = loop
        self._intake = intake
        self._listed: dict[Stream, set[str]] = {}
        self._troubles: dict[Stream, str] = {}
        self._due_s = dict.fromkeys(streams, time.monotonic() + CONNECT_S + GRACE_S)
        """The time at which the next sign of life of each stream is due."""
        self._end_reason: str | None = None

    @property
    def trouble(self) -> str | None:
        """The reason why streams cannot be listed or watched now; None if all can."""
        return "; ".join(dict.fromkeys(self._troubles.values())) or None

    def find_end(self) -> str | None:
        """Return why kopf no longer watches; None if it does."""
        if self._end_reason is not None:
            return self._end_reason
        late_s = time.monotonic() - min(self._due_s.values(), default=time.monotonic())
        if late_s > 0:
            silent = min(self._due_s, key=self._due_s.__getitem__)
            return f"kopf stands still: it asks nothing about {silent}"
        return None

    def trace_config(self) -> aiohttp.TraceConfig:
        """Return the trace configuration that observes a session's requests."""
        trace = aiohttp.TraceConfig()
        trace.on_request_start.append(self._begin)
        trace.on_request_end.append(self._end)
        trace.on_request_exception.append(self._fail)
        return trace

    async def _begin(
        self, _: aiohttp.ClientSession, context: SimpleNamespace, start: aiohttp.TraceRequestStartParams
    ) -> None:
        stream = stream_of(start.url)
        if stream is None:
            self._postpone_all(LIST_S)  # a discovery of the served kinds, or a login
            return
        is_watch = "watch" in start.url.query
        self._expect(stream, WATCH_S + CONNECT_S if is_watch else LIST_S)
        if not is_watch and "continue" not in start.url.query:
            self._listed[stream] = set()
            await call_in(self._loop, self._begin_listing(stream))

    async def _end(
        self, _: aiohttp.ClientSession, context: SimpleNamespace, end: aiohttp.TraceRequestEndParams
    ) -> None:
        stream = stream_of(end.url)
        if stream is None:
            return
        if not end.response.ok:
            status = end.response.status
            self._expect(stream, LONGEST_BACKOFF_S)
            self._set_trouble(stream, f"the API server answers {status} {end.response.reason}")
            if status == _NOT_FOUND:
                self._end_reason = f"{stream.kind}: the CustomResourceDefinition is gone"
            elif status < 500 and status not in _SURVIVED:
                self._end_reason = f"{stream}: the API server answers {status}, and kopf ends"
            return
        self._set_trouble(stream, None)
        if "watch" in end.url.query:
            self._expect(stream, WATCH_S)
            return
        self._expect(stream, LIST_S)
        self._take_page(stream, await end.response.read())

    async def _fail(
        self, _: aiohttp.ClientSession, context: SimpleNamespace, failed: aiohttp.TraceRequestExceptionParams
    ) -> None:
        stream = stream_of(failed.url)
        if stream is not None and not isinstance(failed.exception, asyncio.CancelledError):
            self._expect(stream, LONGEST_BACKOFF_S)
            self._set_trouble(
                stream,
                f"the API server does not answer as it should ({type(failed.exception).__name__}: {failed.exception})",
            )

    async def _begin_listing(self, stream: Stream) -> None:
        self._intake.begin_listing(stream)

    def _take_page(self, stream: Stream, body: bytes) -> None:
        try:
            page = orjson.loads(body)
            uids = {item["metadata"]["uid"] for item in page["items"]}
            is_last = not page["metadata"].get("continue")
        except (ValueError, LookupError, TypeError) as error:
            self._set_trouble(stream, f"a listing that makes no sense ({type(error).__name__}: {error})")
            return
        listed = self._listed.setdefault(stream, set())
        listed |= uids
        if is_last:
            self._loop.call_soon_threadsafe(self._intake.end_listing, stream, self._listed.pop(stream))

    def _expect(self, stream: Stream, within_s: float) -> None:
        if stream in self._due_s:
            self._due_s[stream] = time.monotonic() + within_s + GRACE_S

    def _postpone_all(self, by_s: float) -> None:
        for stream, due_s in self._due_s.items():
            self._due_s[stream] = max(due_s, time.monotonic() + by_s + GRACE_S)

    def _set_trouble(self, stream: Stream, trouble: str | None) -> None:
        if trouble is None:
            self._troubles.pop(stream, None)
        elif self._troubles.get(stream) != (said := f"{stream}: {trouble}"):
            _log.warning("objects out of sight", trouble=said)
            self._troubles[stream] = said


def stream_of(url: URL) -> Stream | None:
    """Return the stream that a request lists or watches; None for any other request."""
    match url.path.removeprefix(f"{API_PATH}/").split("/") if url.path.startswith(f"{API_PATH}/") else []:
        case [plural] if plural in _KINDS:
            return Stream(_KINDS[plural], None)
        case ["namespaces", namespace, plural] if plural in _KINDS:
            return Stream(_KINDS[plural], namespace)
        case _:
            return None
