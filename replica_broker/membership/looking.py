"""Reads from ZooKeeper again after each change, for the broker's whole life."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from controller_core.zk.session import ConnectionLost, SessionExpired, Watch, ZkSession

_PATIENCE_MS: Final = 60_000
_PAUSE_S: Final = 0.1


async def keep_looking(zk: ZkSession, look: Callable[[Watch], Awaitable[None]]) -> None:
    """Call `look`, and call it again whenever its watch fires. `look` arms the watch with its reads.

    After a lost connection or session, `look` is called again when there is a new one. All other errors of `look` are
    raised.
    """
    while True:
        woken = asyncio.Event()
        try:
            await look(lambda _, woken=woken: woken.set())  # type: ignore[misc]  # a lambda with a default
        except (ConnectionLost, SessionExpired):
            await wait_until_connected(zk)
        else:
            await woken.wait()


async def wait_until_connected(zk: ZkSession) -> None:
    """Wait for ZooKeeper without a limit. Raises `SessionExpired` if this process has closed the session."""
    await asyncio.sleep(_PAUSE_S)
    while not await zk.wait_connected(_PATIENCE_MS):
        pass
