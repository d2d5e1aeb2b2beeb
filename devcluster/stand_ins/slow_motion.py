"""Slow motion: every write and every request is delayed by up to three seconds, derived from a seed.

`KONTROLLER_SLOW_MOTION=SEED` in the environment turns it on. A test that reads too early after a write then fails on an
idle machine as well. The n-th delay of a stream depends only on the seed, the stream's name and n, so the same seed
repeats a failure. Half of a delay is before the write and half after it. Each broker has a stream of its own, so
brokers learn of a change at different times.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar
from unittest.mock import patch

from controller_core.model.ids import BrokerId, LeaderEpoch, TopicPartition
from controller_core.model.metadata import Broker, LogEnd
from controller_core.process import connections, run
from controller_core.wire import tcp_link
from controller_core.wire.link import BrokerLink, BrokerLinkFactory
from controller_core.wire.messages import ControlRequest, ControlResponse
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import WriteOp, ZkError, ZkSession
from devcluster.stand_ins.slow_motion_seed import slow_motion_seed

LONGEST_S: Final = 3.0

T = TypeVar("T")


class Delays:
    """The sequence of delays of one stream of writes."""

    def __init__(self, seed: str, stream: str) -> None:
        self._random = random.Random(f"{seed} {stream}")  # noqa: S311 -- repeatable, guards no secret

    def next_s(self) -> float:
        return self._random.uniform(0, LONGEST_S)

    async def delay_write(self, write: Callable[[], Awaitable[T]]) -> T:
        """Run a write in the middle of the next delay."""
        half_s = self.next_s() / 2
        await asyncio.sleep(half_s)
        answer = await write()
        await asyncio.sleep(half_s)
        return answer


class SlowSession(DelegatingSession):
    """A `ZkSession` that delays its writes. Transactions that are sent together share one delay, evenly between them."""

    def __init__(self, session: ZkSession, delays: Delays) -> None:
        super().__init__(session)
        self._delays = delays

    async def transact(self, ops: Sequence[WriteOp]) -> tuple[str, ...]:
        (result,) = await self.transact_many([ops])
        if isinstance(result, ZkError):
            raise result
        return result

    async def transact_many(self, transactions: Sequence[Sequence[WriteOp]]) -> list[tuple[str, ...] | ZkError]:
        if not transactions:
            return []
        pause_s = self._delays.next_s() / (len(transactions) + 1)
        await asyncio.sleep(pause_s)
        results: list[tuple[str, ...] | ZkError] = []
        for ops in transactions:
            results += await self._session.transact_many([ops])
            await asyncio.sleep(pause_s)
        return results


class SlowLink:
    """A `BrokerLink` that delays its requests."""

    def __init__(self, link: BrokerLink, delays: Delays) -> None:
        self._link = link
        self._delays = delays

    async def send(self, request: ControlRequest) -> ControlResponse:
        """See `BrokerLink`."""
        return await self._delays.delay_write(lambda: self._link.send(request))

    async def reach(self) -> None:
        """See `BrokerLink`."""
        await self._link.reach()

    async def static_config(self, broker: BrokerId, names: Collection[str]) -> Mapping[str, str]:
        """See `BrokerLink`."""
        return await self._link.static_config(broker, names)

    async def log_ends(self, epochs: Mapping[TopicPartition, LeaderEpoch]) -> Mapping[TopicPartition, LogEnd | None]:
        """See `BrokerLink`."""
        return await self._link.log_ends(epochs)

    async def close(self) -> None:
        """See `BrokerLink`."""
        await self._link.close()


class Slowed:
    """A wrapper that delays some methods of an object."""

    def __init__(self, inner: Any, delays: Delays, names: Collection[str]) -> None:
        self._inner, self._delays, self._names = inner, delays, names

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if name not in self._names:
            return method

        async def delay_call(*arguments: Any, **named: Any) -> Any:
            return await self._delays.delay_write(lambda: method(*arguments, **named))

        return delay_call


@contextmanager
def slow_controllers() -> Iterator[None]:
    """Run the controllers of the block in slow motion, if the environment sets a seed."""
    if (seed := slow_motion_seed()) is None:
        yield
        return

    async def slow_session(*arguments: Any, **named: Any) -> ZkSession:
        session = await connections.open_zookeeper_session(*arguments, **named)
        return SlowSession(session, Delays(seed, "ZooKeeper"))

    def slow_links(*arguments: Any, **named: Any) -> BrokerLinkFactory:
        links = tcp_link.tcp_link_factory(*arguments, **named)

        def slow_link(broker: Broker) -> BrokerLink:
            return SlowLink(links(broker), Delays(seed, f"broker {broker.id}"))

        return slow_link

    with patch.object(run, "open_zookeeper_session", slow_session), patch.object(run, "tcp_link_factory", slow_links):
        yield
