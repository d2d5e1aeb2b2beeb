"""Background work that nobody awaits: none of it may end unnoticed.

A failed task keeps its error until somebody asks for it, and its work silently stops. So background tasks are started
only here: for work that is done once and logged if it fails, or work that is restarted for as long as the process
lives. Work that its caller awaits needs neither."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any, Final

import structlog

log = structlog.get_logger()

FIRST_BACKOFF_MS: Final = 100.0
LONGEST_BACKOFF_MS: Final = 60_000.0
_WELL_FOR_MS: Final = 120_000.0
"""After this time without a failure the next pause is the first one again."""

OnError = Callable[[Exception], object]


def start_task(work: Coroutine[Any, Any, None], *, name: str, on_error: OnError | None = None) -> asyncio.Task[None]:
    """Do the work once, in a task. An error is logged, and passed to `on_error`."""

    def look(task: asyncio.Task[None]) -> None:
        # Asking for the exception also keeps asyncio from logging it as never retrieved.
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            _notice(error, name, on_error)

    task = asyncio.create_task(work, name=name)
    task.add_done_callback(look)
    return task


def start_supervised(
    work: Callable[[], Coroutine[Any, Any, None]],
    *,
    name: str,
    on_error: OnError | None = None,
    sleep_ms: Callable[[float], Awaitable[None]] | None = None,
    monotonic_ms: Callable[[], float] = lambda: monotonic() * 1000,
) -> asyncio.Task[None]:
    """Do the work in a task until it returns or is cancelled.

    An error is logged, and passed to `on_error`; then the work is restarted after a pause, which doubles from failure
    to failure, up to a minute."""
    sleep = sleep_ms or _sleep_ms

    async def keep_doing() -> None:
        backoff_ms = FIRST_BACKOFF_MS
        while True:
            began_ms = monotonic_ms()
            try:
                return await work()
            except Exception as error:  # noqa: BLE001 - the work has to go on after any error
                if monotonic_ms() - began_ms >= _WELL_FOR_MS:
                    backoff_ms = FIRST_BACKOFF_MS
                _notice(error, name, on_error, again_in_ms=backoff_ms)
            await sleep(backoff_ms)
            backoff_ms = min(2 * backoff_ms, LONGEST_BACKOFF_MS)

    return asyncio.create_task(keep_doing(), name=name)


async def run_until_one_ends(*work: Coroutine[Any, Any, None]) -> None:
    """Do all of the work until one part ends or fails, and raise what that part raised."""
    tasks = [asyncio.create_task(part) for part in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _notice(error: Exception, name: str, on_error: OnError | None, **further: object) -> None:
    log.error("background work failed unexpectedly", work=name, reason=repr(error), exc_info=error, **further)
    if on_error is not None:
        on_error(error)


async def _sleep_ms(duration_ms: float) -> None:
    await asyncio.sleep(duration_ms / 1000)
