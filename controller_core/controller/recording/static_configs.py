"""The static configuration of brokers, for the journal. Only the broker itself knows its file, so each broker is asked.

A file is read when a broker starts, so each registration is asked once. This happens in the background over separate
connections, and neither events nor control requests wait for it. An answer is an event. A broker that does not answer
is asked a few times more, whenever the journal is checked, and is not recorded after that.
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
from controller_core.journal.configs import STATIC_CONFIGS, StaticConfig, select_recorded
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker
from controller_core.supervision import start_task
from controller_core.wire.link import BrokerLinkFactory, LinkError

log = structlog.get_logger()

ROUND_MS: Final = 30_000
"""The timeout of a round of questions. Brokers that have not answered are asked in a later round."""
AT_ONCE: Final = 8
"""The maximum of connections that are open for this."""
MOST_TIMES: Final = 5
"""The maximum of questions for one registration."""


@dataclass(slots=True, kw_only=True)
class StaticConfigs:
    """Asks the brokers of one term."""

    links: BrokerLinkFactory
    clock: Clock
    enqueue: Callable[[Event], None]
    _asked: dict[tuple[BrokerId, BrokerEpoch], int] = field(default_factory=dict)
    """The number of questions to each registered broker that has not answered."""
    _round: asyncio.Task[None] | None = None

    @property
    def is_asking(self) -> bool:
        return self._round is not None and not self._round.done()

    def find_missing(self, state: ClusterState) -> list[Broker]:
        """Return the registered brokers to ask, if questions are left, those with the fewest questions first."""
        unknown = {
            (broker.id, broker.epoch): broker
            for broker in state.brokers.values()
            if (known := state.static_configs.get(broker.id)) is None or known.broker_epoch != broker.epoch
        }
        self._asked = {key: self._asked.get(key, 0) for key in unknown}
        return [unknown[key] for key, times in sorted(self._asked.items(), key=_times) if times < MOST_TIMES]

    def ask(self, brokers: Sequence[Broker]) -> asyncio.Task[None]:
        """Start to ask these brokers. The task ends in time whatever they do. Cancel it to end it earlier."""
        for broker in brokers:
            self._asked[broker.id, broker.epoch] = self._asked.get((broker.id, broker.epoch), 0) + 1
        self._round = start_task(self._ask_all(brokers), name="brokers' own configurations")
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
                log.info("a broker does not return its static configuration", broker=broker.id, reason=str(error))
                return
            except Exception as error:  # noqa: BLE001 - an odd broker must not affect the others
                log.warning("a broker's static configuration was lost", broker=broker.id, reason=repr(error))
                return
            finally:
                await link.close()
        config = StaticConfig(broker_epoch=broker.epoch, config=select_recorded(answered, STATIC_CONFIGS))
        self.enqueue(StaticConfigAnswered(broker.id, config))


def _times(asked: tuple[tuple[BrokerId, BrokerEpoch], int]) -> tuple[int, BrokerId]:
    (broker, _), times = asked
    return times, broker
