"""Concurrent questions to many brokers, with one timeout for all."""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any

from controller_core.controller.loop.clock import Clock
from controller_core.supervision import start_task


async def ask_side_by_side(
    questions: Iterable[Coroutine[Any, Any, None]], clock: Clock, timeout_ms: float, *, name: str
) -> None:
    """Run the questions until all have ended or time is over, then cancel the others.

    An error of one is logged under the name, and does not affect the others.
    """
    alarm = asyncio.create_task(clock.sleep_ms(timeout_ms))
    pending = {start_task(question, name=name) for question in questions}
    try:
        while pending and not alarm.done():
            done, _ = await asyncio.wait({*pending, alarm}, return_when=asyncio.FIRST_COMPLETED)
            pending.difference_update(done)
    finally:
        for task in (*pending, alarm):
            task.cancel()
        await asyncio.gather(*pending, alarm, return_exceptions=True)
