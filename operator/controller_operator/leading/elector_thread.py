"""An elector in a thread and an event loop of its own: nothing that the operator does can delay a renewal.

The operator's loop may be busy for seconds, with a plan over very many partitions for example, and kopf's as well. A thread
gets the interpreter every few milliseconds all the same, so renewals go on as long as the process does.
"""

from typing import Final

from controller_operator.leading.elector import Elector
from controller_operator.loop_thread import LoopThread

_STOP_S: Final = 5.0


class ElectorThread:
    """Runs an elector for a caller in another event loop. A `Leadership`, too."""

    def __init__(self, elector: Elector, thread: LoopThread) -> None:
        """The connections of the elector must be those of the thread's event loop."""
        self._elector = elector
        self._thread = thread

    @property
    def trouble(self) -> str | None:
        """See `Elector`."""
        return self._elector.trouble

    @property
    def lease_uid(self) -> str:
        """See `Leadership`."""
        return self._elector.lease_uid

    def require(self) -> None:
        """See `Leadership`."""
        self._elector.require()

    async def confirm(self) -> None:
        """See `Leadership`."""
        await self._thread.call(self._elector.confirm())

    async def acquire(self) -> None:
        """See `Elector`."""
        await self._thread.call(self._elector.acquire())

    async def keep(self) -> None:
        """See `Elector`."""
        await self._thread.call(self._elector.keep())

    async def release(self) -> None:
        """See `Elector`."""
        await self._thread.call(self._elector.release())

    async def close(self) -> None:
        """Ends the thread."""
        await self._thread.close(_STOP_S)
