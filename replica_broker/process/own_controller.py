"""Our controller within a broker's process: one of the brokers is the cluster's controller (seed 004).

It stands for the role like one in a process of its own, with an id and a port of its own: clients and brokers tell the two
apart by these. It ends after the broker, as it may be the one that lets the broker go.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from controller_core.process.run import run_controller
from controller_core.process.settings import ControllerProcessSettings


class OwnController:
    """What may be the controller, beside the broker; without settings, nothing."""

    def __init__(self, settings: ControllerProcessSettings | None) -> None:
        self._settings = settings
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begins to stand for the role."""
        if self._settings is not None:
            self._task = asyncio.create_task(run_controller(self._settings, until=_await))

    async def keep(self) -> None:
        """Goes on for ever. Raises what ends a controller."""
        if self._task is None:
            await asyncio.Event().wait()
        else:
            await asyncio.shield(self._task)

    async def end(self) -> None:
        """Gives the role back. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


async def _await(work: Coroutine[Any, Any, None]) -> None:
    """Until it is cancelled: the broker has heard of signals."""
    await work
