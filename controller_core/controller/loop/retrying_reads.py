"""Reads that are retried after a lost connection.

A read may be sent any number of times, so handlers need not notice that the connection was away for a moment. Writes
are not repeated here; `FencedWriter` reads back first. The wait is bounded, and it ends early if the session is gone.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import ConnectionLost, Watch, ZkNode, ZkSession

T = TypeVar("T")


class PatientSession(DelegatingSession):
    """A `ZkSession` that retries reads after a lost connection. Raises `ConnectionLost` if it stays away too long."""

    def __init__(self, session: ZkSession, reconnect_timeout_ms: int) -> None:
        super().__init__(session)
        self._reconnect_timeout_ms = reconnect_timeout_ms

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        return await self._patiently(lambda: self._session.read_many(paths))

    async def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        return await self._patiently(lambda: self._session.children_many(paths))

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        return await self._patiently(lambda: self._session.read_watched(paths, watch))

    async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
        return await self._patiently(lambda: self._session.children_watched(path, watch))

    async def _patiently(self, read: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await read()
            except ConnectionLost:
                if not await self._session.wait_connected(self._reconnect_timeout_ms):
                    raise
