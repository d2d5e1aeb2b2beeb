"""Kills a process between two instructions: it no longer writes, sends or learns anything."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.model.metadata import LogEnd
from controller_core.wire.link import BrokerLink
from controller_core.wire.messages import ControlRequest, ControlResponse
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import (
    TreeWatch,
    Watch,
    WriteOp,
    ZkError,
    ZkNode,
    ZkSession,
    transact_alone,
)

T = TypeVar("T")


@dataclass(slots=True)
class Life:
    """The life of a process. It can end at the N-th write or the N-th control request."""

    last_write: int | None = None
    last_request: int | None = None
    writes: int = 0
    requests: int = 0
    is_over: bool = False
    errors: list[Exception] = field(default_factory=list)
    """Errors for the next reads."""

    async def unless_over(self, act: Awaitable[T]) -> T:
        """Return the result of an act, unless the process is dead; then never return."""
        result = await act
        if self.is_over:
            await self.never()
        return result

    async def never(self) -> NoReturn:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("unreachable: nobody completes that future")


class MortalSession(DelegatingSession):
    """A `ZkSession` that falls silent when its process dies, like a real one between two instructions."""

    def __init__(self, session: ZkSession, life: Life) -> None:
        super().__init__(session)
        self._life = life

    async def wait_connected(self, timeout_ms: int) -> bool:
        return not self._life.is_over and await self._session.wait_connected(timeout_ms)

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        return await self._read(lambda: self._session.read_many(paths))

    async def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        return await self._read(lambda: self._session.children_many(paths))

    async def read_watched(self, paths: Sequence[str], watch: Callable[[str], Watch]) -> list[ZkNode | None]:
        return await self._read(lambda: self._session.read_watched(paths, watch))

    async def children_watched(self, path: str, watch: Watch) -> tuple[str, ...] | None:
        return await self._read(lambda: self._session.children_watched(path, watch))

    async def watch_tree(self, path: str, watch: TreeWatch) -> Callable[[], Awaitable[None]]:
        return await self._read(lambda: self._session.watch_tree(path, watch))

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        return await transact_alone(self, ops)

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        life = self._life
        if life.is_over:
            await life.never()
        if life.last_write is not None and life.writes + len(transactions) >= life.last_write:
            await self._session.transact_many(transactions[: life.last_write - life.writes])
            life.is_over = True
            await life.never()
        life.writes += len(transactions)
        return await life.unless_over(self._session.transact_many(transactions))

    async def _read(self, read: Callable[[], Awaitable[T]]) -> T:
        if self._life.is_over:
            await self._life.never()
        if self._life.errors:
            raise self._life.errors.pop(0)
        return await self._life.unless_over(read())


class MortalLink:
    """A `BrokerLink` that falls silent when its process dies."""

    def __init__(self, link: BrokerLink, life: Life) -> None:
        self._link = link
        self._life = life

    async def send(self, request: ControlRequest) -> ControlResponse:
        life = self._life
        life.requests += 1
        if life.last_request is not None and life.requests >= life.last_request:
            life.is_over = True
        if life.is_over:
            await life.never()
        return await life.unless_over(self._link.send(request))

    async def reach(self) -> None:
        await self._ask(lambda: self._link.reach())

    async def static_config(self, broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        return await self._ask(lambda: self._link.static_config(broker, names))

    async def log_ends(self, epochs: Mapping[TopicPartition, LeaderEpoch]) -> Mapping[TopicPartition, LogEnd | None]:
        return await self._ask(lambda: self._link.log_ends(epochs))

    async def _ask(self, ask: Callable[[], Awaitable[T]]) -> T:
        if self._life.is_over:
            await self._life.never()
        return await self._life.unless_over(ask())

    async def close(self) -> None:
        await self._link.close()
