"""An event loop in a thread of its own, for work that the rest of the process must neither delay nor end."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

T = TypeVar("T")
_LAST_S: Final = 2.0
_abandoned: list[asyncio.AbstractEventLoop] = []
"""Loops with tasks that do not end when cancelled. They are kept so that nothing is destroyed half done."""


class LoopThread:
    """A thread that runs an event loop. It ends with the process, even if its work hangs."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    async def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread, and return or raise its result. Cancellation is passed on."""
        return await call_in(self._loop, work)

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Schedule a call in the thread's loop without waiting for it."""
        self._loop.call_soon_threadsafe(callback)

    async def close(self, timeout_s: float) -> bool:
        """Cancel the running tasks and end the thread. Return False if it is still alive after the timeout."""
        self.call_soon(self._loop.stop)
        await asyncio.to_thread(self._thread.join, timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            if self._loop.run_until_complete(_cancel_all()):
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
                self._loop.close()
            else:
                _abandoned.append(self._loop)
        finally:
            asyncio.set_event_loop(None)


async def _cancel_all() -> bool:
    """Cancel all other tasks. Return False if some of them do not end."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    pending = (await asyncio.wait(tasks, timeout=_LAST_S))[1] if tasks else ()
    return not pending


async def call_in(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the event loop of another thread, and return or raise its result."""
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))
