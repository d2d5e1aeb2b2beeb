"""A controller inside the broker's process: one of the brokers is the cluster's controller (seed 004).

It takes part in the election like a separate controller process, with its own id and port, so that clients and brokers
can tell it from the broker. It ends after the broker's controlled shutdown,
which it may have to serve.
"""

import asyncio

from controller_core.process.run import run_until_cancelled
from controller_core.process.settings import ControllerProcessSettings


class OwnController:
    """An optional controller beside the broker. Without settings it does nothing."""

    def __init__(self, settings: ControllerProcessSettings | None) -> None:
        self._settings = settings
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start to take part in the controller election. The broker handles the signals."""
        if self._settings is not None:
            self._task = asyncio.create_task(run_until_cancelled(self._settings))

    async def keep(self) -> None:
        """Run for ever. Raises the errors that end a controller."""
        if self._task is None:
            await asyncio.Event().wait()
        else:
            await asyncio.shield(self._task)

    async def end(self) -> None:
        """Resign from the role. Idempotent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
