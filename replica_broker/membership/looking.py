"""Looks at ZooKeeper whenever there may be something new, for as long as the broker lives."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from controller_core.zk.session import ConnectionLost, SessionExpired, Watch, ZkSession

_PATIENCE_MS: Final = 60_000
_PAUSE_S: Final = 0.1


async def keep_looking(zk: ZkSession, look: Callable[[Watch], Awaitable[None]]) -> None:
    """Looks, and again whenever the watch fires that is given to `look`, which arms it by what it reads.

    A look that fails because the connection or the session was lost is done again when there is one. Whatever else `look`
    raises is raised."""
    while True:
        woken = asyncio.Event()
        try:
            await look(lambda _, woken=woken: woken.set())  # type: ignore[misc]  # a lambda with a default
        except (ConnectionLost, SessionExpired):
            await until_connected(zk)
        else:
            await woken.wait()


async def until_connected(zk: ZkSession) -> None:
    """Waits for ZooKeeper as long as it takes. Raises `SessionExpired` where the session was closed by this process."""
    await asyncio.sleep(_PAUSE_S)
    while not await zk.wait_connected(_PATIENCE_MS):
        pass
