"""What brokers' own files say, for the journal: nobody but each broker knows it, and so each is asked.

A file is read when a broker starts, so each registration is asked about once, in the background, over a connection of its
own: neither events nor control requests wait for it. An answer is an event of its own. A broker that does not answer is
asked a few times more, at the times when the journal is looked after, and is then simply not recorded.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.events import Event, StaticConfigAnswered
from controller_core.controller.loop.side_by_side import ask_side_by_side
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.journal.configs import STATIC_CONFIGS, StaticConfig, recorded
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker
from controller_core.supervision import noticed
from controller_core.wire.link import BrokerLinkFactory, LinkError

log = structlog.get_logger()

ROUND_MS: Final = 30_000
"""How long a round of questions may take; who has not answered then is asked in another one."""
AT_ONCE: Final = 8
"""Connections that are open for this."""
MOST_TIMES: Final = 5
"""A registration is asked about."""


@dataclass(slots=True, kw_only=True)
class StaticConfigs:
    """Asks the brokers of one term."""

    links: BrokerLinkFactory
    clock: Clock
    enqueue: Callable[[Event], None]
    _asked: dict[tuple[BrokerId, BrokerEpoch], int] = field(default_factory=dict)
    """How often; of registered brokers that have not answered."""
    _round: asyncio.Task[None] | None = None

    @property
    def is_asking(self) -> bool:
        return self._round is not None and not self._round.done()

    def missing(self, state: ClusterState) -> list[Broker]:
        """The registered brokers whose file is not known and that may be asked once more, those asked least first."""
        unknown = {
            (broker.id, broker.epoch): broker
            for broker in state.brokers.values()
            if (known := state.static_configs.get(broker.id)) is None or known.broker_epoch != broker.epoch
        }
        self._asked = {key: self._asked.get(key, 0) for key in unknown}
        return [unknown[key] for key, times in sorted(self._asked.items(), key=_times) if times < MOST_TIMES]

    def ask(self, brokers: Sequence[Broker]) -> asyncio.Task[None]:
        """Begins to ask these brokers, and ends in time whatever they do. To end it earlier, cancel the task."""
        for broker in brokers:
            self._asked[broker.id, broker.epoch] = self._asked.get((broker.id, broker.epoch), 0) + 1
        self._round = noticed(self._ask_all(brokers), name="brokers' own configurations")
        return self._round

    async def _ask_all(self, brokers: Iterable[Broker]) -> None:
        turns = asyncio.Semaphore(AT_ONCE)
        questions = (self._ask(broker, turns) for broker in brokers)
        await ask_side_by_side(questions, self.clock, ROUND_MS, name="a broker's own configuration")

    async def _ask(self, broker: Broker, turns: asyncio.Semaphore) -> None:
        async with turns:
            link = self.links(broker)
            try:
                answered = await link.static_config(broker.id, STATIC_CONFIGS)
            except LinkError as error:
                log.info("a broker does not say what its own file configures", broker=broker.id, reason=str(error))
                return
            except Exception as error:  # noqa: BLE001 - one strange broker says nothing of the others
                log.warning("a broker's answer about its own file was lost", broker=broker.id, reason=repr(error))
                return
            finally:
                await link.close()
        config = StaticConfig(broker_epoch=broker.epoch, config=recorded(answered, STATIC_CONFIGS))
        self.enqueue(StaticConfigAnswered(broker.id, config))


def _times(asked: tuple[tuple[BrokerId, BrokerEpoch], int]) -> tuple[int, BrokerId]:
    (broker, _), times = asked
    return times, broker
