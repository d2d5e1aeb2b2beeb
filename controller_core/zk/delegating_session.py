"""A session that passes everything to another one: the base of sessions that change one thing."""

from collections.abc import Awaitable, Callable, Sequence

from controller_core.zk.session import SessionId, SessionListener, TreeWatch, Watch, WriteOp, ZkError, ZkNode, ZkSession


class DelegatingSession:
    """A `ZkSession` that delegates to another. See `ZkSession` for the methods."""

    def __init__(self, session: ZkSession) -> None:
        self._session = session

    @property
    def session_id(self) -> SessionId:
        return self._session.session_id

    @property
    def max_request_bytes(self) -> int:
        return self._session.max_request_bytes

    def request_bytes(self, ops: Sequence[WriteOp]) -> int:
        return self._session.request_bytes(ops)

    async def wait_connected(self, timeout_ms: int) -> bool:
        return await self._session.wait_connected(timeout_ms)

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        return await self._session.read_many(paths)

    async def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        return await self._session.children_many(paths)

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        return await self._session.read_watched(paths, watch)

    async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
        return await self._session.children_watched(path, watch)

    async def watch_tree(self, path: str, watch: TreeWatch) -> Callable[[], Awaitable[None]]:
        return await self._session.watch_tree(path, watch)

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        return await self._session.transact(ops)

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        return await self._session.transact_many(transactions)

    def add_listener(self, listener: SessionListener) -> Callable[[], None]:
        return self._session.add_listener(listener)

    async def close(self) -> None:
        await self._session.close()
