"""An elector in a thread with its own event loop, so that the operator's work cannot delay a renewal.

The operator's loop may be busy for seconds, for example with a plan over very many partitions, and so may kopf's. A
thread still gets the interpreter every few milliseconds. But an operator whose loop hangs for good must not keep the
Lease, so renewals end after a minute without a sign of life from it.
"""

import asyncio
from typing import Final, NoReturn

from controller_core.supervision import run_until_one_ends
from controller_operator.leading.elector import Elector, boot_time_s
from controller_operator.leading.leadership import NotLeading
from controller_operator.loop_thread import LoopThread

_STOP_S: Final = 5.0
_SIGN_OF_LIFE_S: Final = 1.0
_SILENT_S: Final = 60.0


class ElectorThread:
    """Runs an elector for a caller in another event loop. Also a `Leadership`."""

    def __init__(self, elector: Elector, thread: LoopThread) -> None:
        """The elector's connections must belong to the thread's event loop."""
        self._elector = elector
        self._thread = thread
        self._seen_s = 0.0
        """The time of the last sign of life of the caller's event loop."""

    @property
    def trouble(self) -> str | None:
        """See `Elector`."""
        return self._elector.trouble

    @property
    def lease_uid(self) -> str:
        return self._elector.lease_uid

    def require(self) -> None:
        self._elector.require()

    async def confirm(self) -> None:
        await self._thread.call(self._elector.confirm())

    async def acquire(self) -> None:
        """See `Elector`."""
        await self._thread.call(self._elector.acquire())

    async def keep(self) -> None:
        """See `Elector`. Also raises `NotLeading` if the caller's event loop hangs for too long."""
        self._seen_s = boot_time_s()
        await run_until_one_ends(self._thread.call(self._keep_while_seen()), self._give_signs_of_life())

    async def release(self) -> None:
        """See `Elector`."""
        await self._thread.call(self._elector.release())

    async def _keep_while_seen(self) -> None:
        """Renew, in the thread."""
        await run_until_one_ends(self._elector.keep(), self._watch_caller())

    async def _watch_caller(self) -> NoReturn:
        while boot_time_s() - self._seen_s < _SILENT_S:  # noqa: ASYNC110 - another thread gives the signs
            await asyncio.sleep(_SIGN_OF_LIFE_S)
        raise NotLeading(f"the operator's event loop stood still for {_SILENT_S:.0f} s: the lease is not renewed")

    async def _give_signs_of_life(self) -> NoReturn:
        while True:
            self._seen_s = boot_time_s()
            await asyncio.sleep(_SIGN_OF_LIFE_S)

    async def close(self) -> None:
        """End the thread."""
        await self._thread.close(_STOP_S)
