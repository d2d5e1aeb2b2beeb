"""The orderly end of a process: SIGTERM and SIGINT cancel its work, which then releases its resources."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger()


async def run_until_signalled(work: Coroutine[Any, Any, None]) -> None:
    """Do the work until it ends or the first signal cancels it. Further signals do not interrupt its cleanup.

    The work must include the start of the process: the kernel drops SIGTERM if the first process of a container does not
    handle it.
    """
    running = asyncio.create_task(work)
    is_stopping = False

    def stop() -> None:
        nonlocal is_stopping
        if not is_stopping:
            is_stopping = True
            running.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    try:
        await running
    except asyncio.CancelledError:
        log.info("stopped")
