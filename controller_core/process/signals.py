"""The orderly end of a process: SIGTERM and SIGINT cancel its work, which then releases its resources."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger()


async def run_until_signalled(work: Coroutine[Any, Any, None]) -> None:
    """Do the work until it ends or a signal cancels it."""
    running = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        log.info("stopped")
