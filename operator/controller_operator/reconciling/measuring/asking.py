"""Asks several brokers one thing at the same time, and takes the answers that arrive in time."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Final, TypeVar

from controller_core.model.ids import BrokerId

_AT_ONCE: Final = 8
"""The number of brokers that are asked at the same time."""
T = TypeVar("T")


async def ask_brokers(
    brokers: Iterable[BrokerId], ask: Callable[[BrokerId], Coroutine[None, None, T | None]], timeout_s: float
) -> dict[BrokerId, T]:
    """Return what the brokers answer; those that say nothing in time are missing. Raises what `ask` does."""
    gate = asyncio.Semaphore(_AT_ONCE)

    async def ask_in_turn(broker: BrokerId) -> T | None:
        async with gate:
            return await ask(broker)

    tasks = {broker: asyncio.create_task(ask_in_turn(broker)) for broker in brokers}
    if not tasks:
        return {}
    try:
        await asyncio.wait(tasks.values(), timeout=timeout_s)
    finally:
        for task in tasks.values():
            task.cancel()
        outcomes = await asyncio.gather(*tasks.values(), return_exceptions=True)
    if unexpected := [each for each in outcomes if isinstance(each, Exception)]:
        raise unexpected[0]
    answers = zip(tasks, outcomes, strict=True)
    return {broker: found for broker, found in answers if found is not None and not isinstance(found, BaseException)}
