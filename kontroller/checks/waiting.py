"""Repeats a check until it succeeds, or until the time is over."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

PAUSE_S: Final = 1.0


class NotWell(Exception):
    """A check has failed. The message is one line with the problem and its remedy."""


async def wait_until_well(look: Callable[[], Awaitable[str]], timeout_s: float, *, pause_s: float = PAUSE_S) -> str:
    """Return what `look` returns as soon as it raises no `NotWell`.

    Raises the `NotWell` of the last look when the time is over."""
    trouble = NotWell(f"there was no answer in {timeout_s:g} s")
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    return await look()
                except NotWell as error:
                    trouble = error
                await asyncio.sleep(pause_s)
    except TimeoutError as error:
        raise trouble from error
