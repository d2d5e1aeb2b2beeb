"""How a process of ours ends in good order: SIGTERM and SIGINT cancel its work, and what it holds is given back."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger()


async def until_signalled(work: Coroutine[Any, Any, None]) -> None:
    """Does the work until it ends or the process is signalled to."""
    running = asyncio.create_task(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        log.info("stopped")
