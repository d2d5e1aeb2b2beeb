"""Kubernetes events: few, named, and each recorded once.

An event's name follows from the object, the reason, the message and the occurrence. So the API server refuses a
repetition after a restart, because the event exists already. A repeating occurrence has a series, from which the name
follows instead: it is one event, whose count, time and message are renewed.
An event about an end comes once, because an ended object is not planned again. So an event that cannot be posted is
retried in the background. Leftovers of a deleted object are also recorded in the operator's own namespace, by an event
and in a ConfigMap, because a namespace that is being deleted forbids events (`kubernetes.leftovers`).
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Final

import structlog

from controller_core.supervision import start_task
from controller_operator.kubernetes.leftovers import Leftover
from controller_operator.kubernetes.object_api import ApiError, ApiUnavailable, ObjectApi
from controller_operator.kubernetes.object_store import Raw
from controller_operator.leading.leadership import NotLeading
from controller_operator.plans.outcome import Notice

_REMEMBERED: Final = 10_000
_UNPOSTED: Final = 1_000
_FIRST_PAUSE_S: Final = 1.0
_LONGEST_PAUSE_S: Final = 60.0
_MESSAGE_LIMIT: Final = 1_000
_COMPONENT: Final = "kontroller-operator"
_LEFT_BEHIND: Final = "LeftBehind"
_TIME: Final = "%Y-%m-%dT%H:%M:%SZ"
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """The operator's own namespace, and the beginning of the names of its ConfigMaps there."""

    namespace: str
    name: str

    @property
    def leftovers(self) -> str:
        """The name of the ConfigMap with the leftovers of deleted objects."""
        return f"{self.name}-leftovers"

    @property
    def throttles(self) -> str:
        """The name of the ConfigMap with the throttles of clusters without ZooKeeper."""
        return f"{self.name}-throttles"


DEFAULT_HOME: Final = Home(namespace="default", name=_COMPONENT)
Write = Callable[[], Awaitable[None]]


class EventRecorder:
    """Posts events. A refused one is logged and dropped, because nothing depends on it. `close` it at the end."""

    def __init__(self, api: ObjectApi, home: Home | None = None, count_leftover: Callable[[str], object] = str) -> None:
        """`home`: the place of leftovers; None: they are not recorded. `count_leftover` counts one, by its kind."""
        self._api = api
        self._home = home
        self._count_leftover = count_leftover
        self._told: OrderedDict[str, None] = OrderedDict()
        self._unposted: OrderedDict[str, Callable[[], Awaitable[bool]]] = OrderedDict()
        self._catching_up: asyncio.Task[None] | None = None

    async def post(self, raw: Raw, notice: Notice) -> None:
        """Record an event about an object, unless it was recorded already."""
        event = _event(raw, notice, datetime.now(UTC))
        name = event["metadata"]["name"]
        telling = f"{name} {notice.count}"
        if telling in self._told:
            return
        self._told[telling] = None
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)
        log = _log.warning if notice.is_warning else _log.info
        log(notice.message, reason=notice.reason, kind=raw["kind"], name=raw["metadata"]["name"])
        await self._write(name, notice.reason, partial(self._api.create_event, event["metadata"]["namespace"], event))
        if notice.is_leftover:
            self._count_leftover(raw["kind"])
            await self._keep_leftover(raw, notice)

    async def _keep_leftover(self, raw: Raw, notice: Notice) -> None:
        if (home := self._home) is None:
            return
        about, now = raw["metadata"], datetime.now(UTC)
        left = Leftover(
            time=about.get("deletionTimestamp") or now.strftime(_TIME),
            kind=raw["kind"],
            namespace=about["namespace"],
            name=about["name"],
            reason=notice.reason,
            message=notice.message[:_MESSAGE_LIMIT],
        )
        # Entries are sorted by name, the oldest first. A repetition after a crash has the same name.
        identity = sha256(f"{about.get('uid')} {notice.reason} {notice.message}".encode()).hexdigest()[:16]
        entry = f"{left.time.replace(':', '-')}.{identity}"
        keep = partial(self._api.keep_leftover, home.namespace, home.leftovers, entry, left.render())
        await self._write(entry, notice.reason, keep)
        metadata = {"name": home.leftovers, "namespace": home.namespace}
        record = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
        message = f"{left.kind} {left.namespace}/{left.name} ({left.reason}): {notice.message}"
        told = Notice(reason=_LEFT_BEHIND, message=message, is_warning=True, occurrence=str(about.get("uid")))
        event = _event(record, told, now)
        await self._write(
            event["metadata"]["name"], told.reason, partial(self._api.create_event, home.namespace, event)
        )

    async def _write(self, name: str, reason: str, write: Write) -> None:
        """Write now, or later if the API server cannot accept it now."""
        if await self._is_dealt_with(reason, write):
            return
        self._unposted[name] = partial(self._is_dealt_with, reason, write)
        if len(self._unposted) > _UNPOSTED:
            self._unposted.popitem(last=False)
        # One task retries all events in order.
        if self._catching_up is None or self._catching_up.done():
            self._catching_up = start_task(self._post_later(), name="events that could not be posted")

    async def close(self) -> None:
        """Give up the events that could not be posted."""
        if self._catching_up is not None:
            self._catching_up.cancel()
            await asyncio.gather(self._catching_up, return_exceptions=True)

    async def _post_later(self) -> None:
        with suppress(NotLeading):  # then the whole process ends
            await self._catch_up()

    async def _catch_up(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while self._unposted:
            await asyncio.sleep(pause_s)
            name, attempt = next(iter(self._unposted.items()))
            if await attempt():
                if self._unposted.get(name) is attempt:  # not a newer one of its series
                    del self._unposted[name]
                pause_s = 0.0
            else:
                pause_s = min(max(2 * pause_s, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)

    async def _is_dealt_with(self, reason: str, write: Write) -> bool:
        """Return True if it is written, or never will be."""
        try:
            await write()
        except ApiError as error:
            _log.warning("event not posted", reason=reason, error=str(error))
            return not isinstance(error, ApiUnavailable)
        return True


def _event(raw: Raw, notice: Notice, now: datetime) -> Raw:
    metadata = raw["metadata"]
    occasion = notice.series or f"{metadata.get('generation')} {notice.message} {notice.occurrence}"
    identity = f"{metadata.get('uid')} {notice.reason} {occasion}"
    timestamp = now.strftime(_TIME)
    return {
        "metadata": {
            "name": f"{metadata['name'][:200]}.{sha256(identity.encode()).hexdigest()[:16]}",
            "namespace": metadata["namespace"],
        },
        "involvedObject": {
            "apiVersion": raw["apiVersion"],
            "kind": raw["kind"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "uid": metadata.get("uid"),
            "resourceVersion": metadata.get("resourceVersion"),
        },
        "type": "Warning" if notice.is_warning else "Normal",
        "reason": notice.reason,
        "message": notice.message[:_MESSAGE_LIMIT],
        "firstTimestamp": timestamp,
        "lastTimestamp": timestamp,
        "count": notice.count,
        "source": {"component": _COMPONENT},
    }
