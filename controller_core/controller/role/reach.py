"""The registered brokers that this process could lead: those that answer on the listener that it would use.

A controller that cannot send anything to the brokers is worse than none: it holds the role, and nobody leads. So a
process asks the brokers before it takes the role, and keeps asking while it has it. All are asked in parallel, each
over its own connection, so that neither a slow broker nor a long control request looks like a network partition.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.model.ids import BrokerId
from controller_core.model.metadata import Broker
from controller_core.wire.link import BrokerLinkFactory, BrokerUnreachable, LinkError, NotSpoken
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.registered_brokers import read_registered_brokers
from controller_core.zk.session import ConnectionLost, SessionExpired, ZkSession

log = structlog.get_logger()

LOOKS_IN_TIME: Final = 6
"""The number of checks within the time after which the brokers count as lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """The result of one check. Brokers with unreadable registrations cannot be led, and do not count."""

    reached: frozenset[BrokerId]
    failures: dict[BrokerId, str]
    """The reasons why the other brokers are out of reach."""
    unsupported: frozenset[BrokerId]
    """Those of them whose protocol versions the controller does not support."""
    is_own_id_taken: bool
    """True if a broker is registered under this process's id. It cannot be led, and does not count."""
    taken_ms: float

    @property
    def has_majority(self) -> bool:
        """True if most of the brokers answered, or none is registered."""
        return len(self.reached) > len(self.failures) or not self.failures

    @property
    def is_alone(self) -> bool:
        """True if brokers are registered and none of them answered."""
        return not self.reached and bool(self.failures)


class Reach:
    """Asks the brokers at regular intervals. `on_look` is called after each check, on the event loop."""

    def __init__(
        self,
        own_id: BrokerId,
        zk: ZkSession,
        links: BrokerLinkFactory,
        clock: Clock,
        *,
        timeout_ms: int,
        on_reached: Callable[[Broker], None],
        on_look: Callable[[], None],
    ) -> None:
        """`on_reached` is called with each broker that answers."""
        self._own_id = own_id
        self._zk = zk
        self._links = links
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._interval_ms = timeout_ms / LOOKS_IN_TIME
        self._on_reached = on_reached
        self._on_look = on_look
        self._sight: Sight | None = None
        self._alone_since_ms: float | None = None

    @property
    def is_known(self) -> bool:
        """True if the brokers have been asked at all."""
        return self._sight is not None

    @property
    def had_majority(self) -> bool:
        """True if most of the brokers answered the last check."""
        return self._sight is not None and self._sight.has_majority

    @property
    def reached(self) -> frozenset[BrokerId]:
        """The brokers that answered the last check."""
        return self._sight.reached if self._sight else frozenset()

    @property
    def failures(self) -> dict[BrokerId, str]:
        """The reasons why the others are out of reach."""
        return self._sight.failures if self._sight else {}

    @property
    def unsupported(self) -> frozenset[BrokerId]:
        """The brokers of an unsupported release or mode of Kafka."""
        return self._sight.unsupported if self._sight else frozenset()

    @property
    def is_own_id_taken(self) -> bool:
        """True if a broker is registered under this process's id."""
        return self._sight is not None and self._sight.is_own_id_taken

    @property
    def is_lost(self) -> bool:
        """True if no registered broker has answered for so long that another process should lead."""
        since_ms = self._alone_since_ms
        return since_ms is not None and self._clock.monotonic_ms() - since_ms >= self._timeout_ms

    async def keep_looking(self) -> None:
        """Ask all brokers at regular intervals, until cancelled."""
        while True:
            with suppress(ConnectionLost, SessionExpired):  # the last result stays valid until ZooKeeper answers
                self._on_sight(await self._look())
                self._on_look()
            await self._clock.sleep_ms(self._interval_ms)

    async def has_majority(self) -> bool:
        """Return True if most of the brokers answer.

        Ask them, unless that has just been done. Stop when the result is clear.
        """
        last = self._sight
        if last and last.has_majority and self._clock.monotonic_ms() - last.taken_ms < 2 * self._interval_ms:
            return True
        return (await self._look(until=lambda sight: sight.has_majority)).has_majority

    async def _look(self, until: Callable[[Sight], bool] = lambda _: False) -> Sight:
        """Ask all brokers at once. Return when all have answered, when time is over, or when enough is known."""
        ids = await read_registered_brokers(self._zk)
        is_taken, brokers = self._own_id in ids, await self._read_registrations(sorted(ids - {self._own_id}))
        asking = {asyncio.create_task(self._ask(broker)): broker.id for broker in brokers}
        alarm = asyncio.create_task(self._clock.sleep_ms(self._interval_ms))
        pending = set(asking)
        try:
            sight = self._sight_of(asking, is_own_id_taken=is_taken)
            while pending and not alarm.done() and not until(sight):
                done, _ = await asyncio.wait({*pending, alarm}, return_when=asyncio.FIRST_COMPLETED)
                pending.difference_update(done)
                sight = self._sight_of(asking, is_own_id_taken=is_taken)
        finally:
            for task in (*pending, alarm):
                task.cancel()
            await asyncio.gather(*pending, alarm, return_exceptions=True)
        return sight

    def _sight_of(self, asking: dict[asyncio.Task[LinkError | None], BrokerId], *, is_own_id_taken: bool) -> Sight:
        silent = BrokerUnreachable(f"no answer within {self._interval_ms:.0f} ms")
        found = {broker: task.result() if task.done() else silent for task, broker in asking.items()}
        return Sight(
            reached=frozenset(broker for broker, failure in found.items() if failure is None),
            failures={broker: str(failure) for broker, failure in found.items() if failure is not None},
            unsupported=frozenset(broker for broker, failure in found.items() if isinstance(failure, NotSpoken)),
            is_own_id_taken=is_own_id_taken,
            taken_ms=self._clock.monotonic_ms(),
        )

    async def _ask(self, broker: Broker) -> LinkError | None:
        """Return the reason why a broker is out of reach; None if it answers."""
        link = self._links(broker)
        try:
            await link.reach()
            self._on_reached(broker)
        except LinkError as error:
            return error
        except Exception as error:  # noqa: BLE001 - one odd registration must not affect the other brokers
            return LinkError(f"unexpected error: {error!r}")
        finally:
            await link.close()
        return None

    async def _read_registrations(self, ids: Sequence[BrokerId]) -> list[Broker]:
        nodes = await self._zk.read_many([paths.broker(broker) for broker in ids])
        brokers = []
        for broker, node in zip(ids, nodes, strict=True):
            with suppress(MalformedZnode):  # the process with the role reports it
                if node is not None:
                    brokers.append(codecs.decode_broker(broker, node))
        return brokers

    def _on_sight(self, sight: Sight) -> None:
        last, self._sight = self._sight, sight
        if not sight.is_alone:
            self._alone_since_ms = None
        elif self._alone_since_ms is None:
            self._alone_since_ms = sight.taken_ms
        if sight.failures.keys() != (last.failures.keys() if last else set()):
            log.warning("brokers out of reach", reached=sorted(sight.reached), failures=sight.failures)
