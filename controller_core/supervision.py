"""Work in the background, which nobody awaits: none of it may end unnoticed.

A task that fails keeps its error to itself until somebody asks for it, and what it did is simply not done any more. So
nothing begins a task of its own: it is `noticed`, where the work is done once, or `supervised`, where it has to go on for
as long as the process does. What a caller awaits anyway needs neither.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any, Final

import structlog

log = structlog.get_logger()

FIRST_BACKOFF_MS: Final = 100.0
LONGEST_BACKOFF_MS: Final = 60_000.0
_WELL_FOR_MS: Final = 120_000.0
"""Work that went on for so long was well: the pause after its next failure is the first one again."""

OnError = Callable[[Exception], object]


def noticed(work: Coroutine[Any, Any, None], *, name: str, on_error: OnError | None = None) -> asyncio.Task[None]:
    """Does the work once, in a task. An error is logged, and passed to `on_error`."""

    def look(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and isinstance(error := task.exception(), Exception):
            _notice(error, name, on_error)

    task = asyncio.create_task(work, name=name)
    task.add_done_callback(look)
    return task


def supervised(
    work: Callable[[], Coroutine[Any, Any, None]],
    *,
    name: str,
    on_error: OnError | None = None,
    sleep_ms: Callable[[float], Awaitable[None]] | None = None,
    monotonic_ms: Callable[[], float] = lambda: monotonic() * 1000,
) -> asyncio.Task[None]:
    """Does the work in a task until it returns or is cancelled.

    An error is logged, and passed to `on_error`; the work is begun anew after a pause, which doubles from one failure to
    the next, up to a minute.
    """
    sleep = sleep_ms or _sleep_ms

    async def keep_doing() -> None:
        backoff_ms = FIRST_BACKOFF_MS
        while True:
            began_ms = monotonic_ms()
            try:
                return await work()
            except Exception as error:  # noqa: BLE001 - whatever it is, the work has to go on
                if monotonic_ms() - began_ms >= _WELL_FOR_MS:
                    backoff_ms = FIRST_BACKOFF_MS
                _notice(error, name, on_error, again_in_ms=backoff_ms)
            await sleep(backoff_ms)
            backoff_ms = min(2 * backoff_ms, LONGEST_BACKOFF_MS)

    return asyncio.create_task(keep_doing(), name=name)


async def until_one_ends(*work: Coroutine[Any, Any, None]) -> None:
    """Does all of it until one part of it ends or fails, and raises what that part raised."""
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
