"""`Watcher` by kopf. Its handlers (`controller_operator.handlers`) pass events and questions to it.

kopf has its own thread and event loop, because it cancels every task of its loop when it ends
(https://github.com/nolar/kopf/issues/1030). The operator works in another loop, and this module passes objects and
questions between the two. kopf is started once per process. If it ends or hangs, or if the served kinds change, `keep`
raises `WatchEnded`: the process exits gracefully, and its successor watches the present kinds.
"""

import asyncio
import time
from collections import deque
from collections.abc import Collection
from typing import Any, Final, NoReturn, cast

import kopf
import structlog

from controller_operator.admission.judge import Judge, Judgement
from controller_operator.admission.server import AdmissionServer
from controller_operator.kubernetes.object_api import ApiError, ObjectApi
from controller_operator.kubernetes.object_intake import ObjectIntake, Stream
from controller_operator.kubernetes.object_store import Raw
from controller_operator.kubernetes.watcher import WatchEnded
from controller_operator.loop_thread import LoopThread, call_in
from controller_operator.watching.kopf_settings import configure_kopf
from controller_operator.watching.session import open_session
from controller_operator.watching.watch_requests import WatchRequests

_LOOK_S: Final = 1.0
_SERVED_S: Final = 10.0
_LOGIN_S: Final = 5.0
"""Least seconds between two logins, because kopf logs in again after every 401."""
_STOP_S: Final = 5.0
_log = structlog.get_logger(__name__)


class KopfWatcher:
    """Passes the events of kopf's handlers to the operator. It is a `Watcher` once kopf runs."""

    def __init__(self, api: ObjectApi) -> None:
        self._api = api
        self._loop = asyncio.get_running_loop()
        self._intake: ObjectIntake | None = None
        self._requests: WatchRequests | None = None
        self._kinds: set[str] = set()
        self._is_started = asyncio.Event()
        self._handed: deque[tuple[str | None, Raw]] = deque()
        self._server: AdmissionServer | None = None
        self._judge: Judge | None = None
        self._logged_in_at_s = float("-inf")
        self._end: str | None = None

    # For the operator, in its loop.

    def serve_webhook(self, server: AdmissionServer, judge: Judge) -> None:
        """Let kopf serve the webhook, and a judge answer. Call it before `start`."""
        self._server, self._judge = server, judge

    @property
    def trouble(self) -> str | None:
        return self._requests.trouble if self._requests is not None else None

    async def start(self, intake: ObjectIntake, streams: Collection[Stream]) -> None:
        self._intake, self._requests = intake, WatchRequests(self._loop, intake, streams)
        self._kinds = {stream.kind for stream in streams}
        self._is_started.set()

    async def keep(self) -> NoReturn:
        await self._is_started.wait()
        assert self._requests is not None
        ask_at_s = time.monotonic() + _SERVED_S
        while True:
            await asyncio.sleep(_LOOK_S)
            reason = self._requests.find_end() or self._end
            if reason is None and time.monotonic() >= ask_at_s:
                reason = await self._find_other_kinds()
                ask_at_s = time.monotonic() + _SERVED_S
            if reason is not None:
                raise WatchEnded(f"the watches ended, and a new process must begin them again: {reason}")

    async def stop(self) -> None:
        """See `Watcher`."""

    def _pass_on(self) -> None:
        """Give the intake the events of the handlers."""
        assert self._intake is not None
        while self._handed:
            self._intake.hand_event(*self._handed.popleft())

    async def _find_other_kinds(self) -> str | None:
        """Return the kinds that came or went since the start, in words; None if there are none, or on an error."""
        try:
            served = await self._api.read_served_kinds()
        except ApiError:
            return None  # trouble with the API server shows in the watches
        come, gone = sorted(served - self._kinds), sorted(self._kinds - served)
        said = [*(f"{kind} is served now" for kind in come), *(f"{kind} is no longer served" for kind in gone)]
        return ", ".join(said) or None

    # For the handlers, in kopf's loop.

    def configure(self, settings: kopf.OperatorSettings) -> None:
        """Configure kopf."""
        configure_kopf(settings)
        settings.admission.server = self._server or _serve_no_webhook

    async def log_in(self) -> kopf.AiohttpSession:
        """Return a session for kopf's requests."""
        assert self._requests is not None
        await asyncio.sleep(self._logged_in_at_s + _LOGIN_S - time.monotonic())
        self._logged_in_at_s = time.monotonic()
        return await open_session(self._requests.trace_config())

    def hand_over(self, event: kopf.RawEvent) -> None:
        """Pass on an event."""
        raw: Any = event["object"]
        metadata = {name: value for name, value in raw["metadata"].items() if name != "managedFields"}
        self._handed.append((event["type"], {**raw, "metadata": metadata}))
        if len(self._handed) == 1:  # otherwise the operator's loop has been woken, and takes this one as well
            self._loop.call_soon_threadsafe(self._pass_on)

    async def judge(self, asked: Raw | None, before: Raw | None) -> Judgement:
        """Return the judgement of a change. None stands for an object that does not exist before, or afterwards."""
        assert self._judge is not None
        return await call_in(self._loop, self._judge.judge(asked, before))


class KopfThread(KopfWatcher):
    """Runs kopf with the handlers of the default registry, in a thread of its own."""

    def __init__(self, api: ObjectApi, namespaces: Collection[str]) -> None:
        super().__init__(api)
        self._namespaces = namespaces
        self._thread: LoopThread | None = None
        self._running: asyncio.Task[None] | None = None
        self._stop_flag: asyncio.Event | None = None

    async def start(self, intake: ObjectIntake, streams: Collection[Stream]) -> None:
        """See `Watcher`."""
        self._thread = LoopThread("kopf")
        await super().start(intake, streams)
        self._running = asyncio.create_task(self._run(self._thread), name="kopf")

    async def stop(self) -> None:
        """See `Watcher`. kopf may never stop after an error; then its loop is abandoned."""
        if self._thread is None or self._running is None:
            return
        if self._stop_flag is not None:
            self._thread.call_soon(self._stop_flag.set)
        await asyncio.wait((self._running,), timeout=_STOP_S)
        if not self._running.done():
            _log.warning("kopf did not stop in time", waited_s=_STOP_S)
        if not await self._thread.close(_STOP_S):
            _log.warning("the thread of kopf did not end in time: it ends with the process", waited_s=_STOP_S)
        self._running.cancel()
        self._thread = None

    async def _run(self, thread: LoopThread) -> None:
        try:
            await thread.call(self._operate())
        except Exception as error:  # noqa: BLE001 - any error ends the process: `keep` reports it
            self._end = f"kopf ended by {type(error).__name__}: {error}"
        finally:
            self._end = self._end or "kopf ended"

    async def _operate(self) -> None:
        # Not a threading.Event, because a thread of kopf's would wait for that and never end.
        self._stop_flag = asyncio.Event()
        await kopf.operator(
            memo=kopf.Memo(watcher=self),
            clusterwide=not self._namespaces,
            namespaces=list(self._namespaces),
            standalone=True,
            identity=cast(Any, "kontroller"),  # the default needs DNS; without peers nobody reads it
            stop_flag=self._stop_flag,
        )


async def _serve_no_webhook(_: kopf.WebhookFn) -> Any:
    """Serve nothing, because kopf needs a server for handlers of admissions."""
    await asyncio.Event().wait()
    yield {}
