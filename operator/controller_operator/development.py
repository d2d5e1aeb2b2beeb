"""The operator under `kopf run`: kopf has the main thread and the signals, the operator a thread of its own."""

import asyncio
import os
import signal
from collections.abc import Collection
from typing import Final

import kopf
import structlog
from pydantic import ValidationError

from controller_core.process.logging import configure_logging
from controller_core.process.settings import make_invalid_settings
from controller_operator.kubernetes.object_api import ObjectApi
from controller_operator.kubernetes.object_intake import ObjectIntake, Stream
from controller_operator.loop_thread import LoopThread
from controller_operator.process import operate
from controller_operator.settings import OperatorSettings
from controller_operator.watching.kopf_watcher import KopfWatcher

_STOP_S: Final = 40.0
_log = structlog.get_logger(__name__)


class _HostedWatcher(KopfWatcher):
    """The watcher of an operator that kopf hosts: kopf runs already, and waits in `kopf.on.startup`."""

    def __init__(self, api: ObjectApi, is_ready: "asyncio.Future[KopfWatcher]") -> None:
        super().__init__(api)
        self._is_ready = is_ready

    async def start(self, intake: ObjectIntake, streams: Collection[Stream]) -> None:
        """See `Watcher`."""
        await super().start(intake, streams)
        self._is_ready.get_loop().call_soon_threadsafe(self._is_ready.set_result, self)


class HostedOperator:
    """An operator under `kopf run`."""

    def __init__(self, watcher: KopfWatcher, thread: LoopThread, work: "asyncio.Task[None]") -> None:
        """`work` belongs to the event loop of the thread."""
        self.watcher = watcher
        self._thread = thread
        self._work = work

    async def stop(self) -> None:
        """End the work gracefully, then its thread."""
        await self._thread.call(_cancel(self._work))
        await self._thread.close(_STOP_S)


async def start_operator(*, is_clusterwide: bool) -> HostedOperator:
    """Start an operator with the settings of the environment (`KONTROLLER_*`). Return it once kopf can begin to watch.

    Raises `kopf.PermanentError` if the settings do not fit those of kopf, and the exceptions of `process.operate`."""
    try:
        settings = OperatorSettings()
    except ValidationError as error:
        raise kopf.PermanentError(make_invalid_settings(error, OperatorSettings)) from error
    if settings.all_namespaces != is_clusterwide:
        raise kopf.PermanentError(
            "kopf and the operator must watch the same: give `kopf run` --all-namespaces and set "
            "KONTROLLER_ALL_NAMESPACES=true, or give it --namespace and set KONTROLLER_NAMESPACE to the same names, "
            "separated by commas"
        )
    configure_logging("console")
    thread = LoopThread("operator")
    is_ready: asyncio.Future[KopfWatcher] = asyncio.get_running_loop().create_future()
    work = await thread.call(_begin(settings, is_ready))
    return HostedOperator(await is_ready, thread, work)


async def _begin(settings: OperatorSettings, is_ready: "asyncio.Future[KopfWatcher]") -> "asyncio.Task[None]":
    work = asyncio.create_task(operate(settings, lambda api: _HostedWatcher(api, is_ready)))

    def notice_end(_: "asyncio.Task[None]") -> None:
        if not work.cancelled() and (error := work.exception()) is not None:
            is_ready.get_loop().call_soon_threadsafe(_end_kopf, is_ready, error)

    work.add_done_callback(notice_end)
    return work


async def _cancel(work: "asyncio.Task[None]") -> None:
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


def _end_kopf(is_ready: "asyncio.Future[KopfWatcher]", error: BaseException) -> None:
    """End kopf, because without the operator it would watch for nobody."""
    if not is_ready.done():
        is_ready.set_exception(kopf.PermanentError(f"{type(error).__name__}: {error}"))
        return
    _log.error("the operator ended", reason=f"{type(error).__name__}: {error}")
    os.kill(os.getpid(), signal.SIGTERM)
