"""Asks several brokers the same question at once, and takes the answers that arrive in time."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from controller_core.client.errors import AdminError
from controller_core.client.log_dirs.log_sizes import BrokerClient, OpenBroker
from controller_core.model.ids import BrokerId
from controller_core.model.snapshot import Snapshot
from controller_operator.kafka.broker_listeners import BrokerListener

_AT_ONCE: Final = 8
"""The number of brokers that are asked at the same time."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers(Generic[T]):
    """The answers of brokers, and a line about each broker that could not be asked. One that is late is in neither."""

    by_broker: dict[BrokerId, T]
    troubles: tuple[str, ...]


async def ask_brokers(
    brokers: Collection[BrokerId],
    view: Snapshot,
    listener: BrokerListener,
    open_broker: OpenBroker,
    ask: Callable[[BrokerId, BrokerClient], Awaitable[T | None]],
    timeout_s: float,
) -> Answers[T]:
    """Return the answers of brokers of the view, each asked with its own client. Raises the exceptions of `ask` except
    `AdminError`."""
    gate, troubles = asyncio.Semaphore(_AT_ONCE), list[str]()

    async def ask_in_turn(broker: BrokerId) -> T | None:
        async with gate:
            try:
                client = open_broker(listener.addresses(view.brokers[broker]), security=listener.security)
                return await ask(broker, client)
            except AdminError as error:
                troubles.append(f"broker {broker}: {error or type(error).__name__}")
                return None

    tasks = {broker: asyncio.create_task(ask_in_turn(broker)) for broker in brokers}
    if not tasks:
        return Answers(by_broker={}, troubles=())
    try:
        await asyncio.wait(tasks.values(), timeout=timeout_s)
    finally:
        for task in tasks.values():
            task.cancel()
        outcomes = await asyncio.gather(*tasks.values(), return_exceptions=True)
    if unexpected := [each for each in outcomes if isinstance(each, Exception)]:
        raise unexpected[0]
    by_broker = {
        broker: found
        for broker, found in zip(tasks, outcomes, strict=True)
        if found is not None and not isinstance(found, BaseException)
    }
    return Answers(by_broker=by_broker, troubles=tuple(troubles))
