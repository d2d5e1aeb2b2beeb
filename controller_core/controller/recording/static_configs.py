"""The static configuration of brokers: settings in their files. Only the broker itself knows its file, so it is asked.

A file is read when a broker starts, so each registration is asked once. A process asks the brokers that it reaches, also
while it stands by, so a new controller knows the answers from the start. This happens in the background over separate
connections. Neither events nor control requests wait for it, and an answer is an event. A broker that does not answer,
or refuses, is asked again, each time later.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.events import Event, StaticConfigAnswered
from controller_core.controller.loop.side_by_side import ask_side_by_side
from controller_core.journal.configs import STATIC_CONFIGS, StaticConfig, select_recorded
from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker
from controller_core.model.settings.differences import Difference
from controller_core.model.wording import list_some
from controller_core.supervision import start_task
from controller_core.wire.link import BrokerLinkFactory, LinkError

log = structlog.get_logger()

PATIENCE_MS: Final = 30_000
"""The time that a broker has to answer."""
FIRST_PAUSE_MS: Final = 2_000
LONGEST_PAUSE_MS: Final = 300_000
"""The pause before the next question to a broker. It doubles each time."""
FIRST_ANSWERS_MS: Final = 5_000
"""The longest time that a request waits for the first answers after the start of a process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Silence:
    """A registration whose last question was not answered."""

    epoch: BrokerEpoch
    reason: str
    pause_ms: float
    ends_ms: float


@dataclass(slots=True, kw_only=True)
class StaticConfigs:
    """Asks brokers for one process, and remembers their last answers."""

    links: BrokerLinkFactory
    clock: Clock
    enqueue: Callable[[Event], None]
    _answers: dict[BrokerId, StaticConfig] = field(default_factory=dict)
    _silences: dict[BrokerId, _Silence] = field(default_factory=dict)
    _asking: dict[BrokerId, asyncio.Task[None]] = field(default_factory=dict)
    _are_all_asked: bool = False
    """True if all brokers in reach have been asked at least once."""
    _first_answers: asyncio.Event = field(default_factory=asyncio.Event)
    _reported: frozenset[tuple[str, frozenset[str]]] = frozenset()
    """The names and values of the differences in the log."""

    def ask(self, broker: Broker) -> None:
        """Ask a broker in reach, unless it has answered under this registration, or was asked a short time ago."""
        if broker.id in self._asking or self.find_answer(broker) is not None:
            return
        silence = self._find_silence(broker)
        if silence is None or self.clock.monotonic_ms() >= silence.ends_ms:
            self._asking[broker.id] = start_task(self._ask_in_time(broker), name="a broker's own configuration")

    def find_answer(self, broker: Broker) -> StaticConfig | None:
        """Return what a broker answered under its present registration."""
        known = self._answers.get(broker.id)
        return known if known is not None and known.broker_epoch == broker.epoch else None

    def explain_silence(self, brokers: Collection[Broker]) -> str:
        """Return why these brokers have not answered: `broker 1: DescribeConfigs: cluster_authorization_failed`."""
        silences = ((broker.id, self._find_silence(broker)) for broker in brokers)
        reasons = (f"broker {number}: {silence.reason if silence else 'not asked yet'}" for number, silence in silences)
        return list_some(reasons) or "there is no broker"

    def mark_all_asked(self) -> None:
        """Note that all brokers in reach have been asked."""
        self._are_all_asked = True
        self._check_first_answers()

    async def wait_for_first_answers(self) -> None:
        """Return when the brokers that were in reach at the start have answered or failed, or after some seconds.

        A request that arrives with the first answers under way need not be refused because of unknown settings.
        """
        if not self._first_answers.is_set():
            await ask_side_by_side((self._see_first_answers(),), self.clock, FIRST_ANSWERS_MS, name="first answers")

    def report(self, differences: Sequence[Difference]) -> None:
        """Log the differences that are new since the last report, and those that are gone."""
        present = frozenset((each.name, frozenset(each.nodes)) for each in differences)
        for each in differences:
            if (each.name, frozenset(each.nodes)) not in self._reported:
                log.warning("a setting differs between brokers, or between brokers and controller", setting=str(each))
        for name in sorted({name for name, _ in self._reported} - {name for name, _ in present}):
            log.info("brokers and controller have the same setting again", setting=name)
        self._reported = present

    def close(self) -> None:
        """Stop asking."""
        for task in self._asking.values():
            task.cancel()

    def _find_silence(self, broker: Broker) -> _Silence | None:
        silence = self._silences.get(broker.id)
        return silence if silence is not None and silence.epoch == broker.epoch else None

    async def _ask_in_time(self, broker: Broker) -> None:
        before = self._find_silence(broker)
        try:
            await ask_side_by_side((self._ask(broker),), self.clock, PATIENCE_MS, name="a broker's own configuration")
            if self.find_answer(broker) is None and self._find_silence(broker) is before:
                self._remember_silence(broker, f"no answer within {PATIENCE_MS} ms")
        finally:
            del self._asking[broker.id]
            self._check_first_answers()

    async def _ask(self, broker: Broker) -> None:
        link = self.links(broker)
        try:
            answered = await link.static_config(broker.id, STATIC_CONFIGS)
        except LinkError as error:
            self._remember_silence(broker, str(error))
        except Exception as error:  # noqa: BLE001 - an odd broker must not affect the others
            self._remember_silence(broker, repr(error))
        else:
            config = StaticConfig(broker_epoch=broker.epoch, config=select_recorded(answered, STATIC_CONFIGS))
            self._answers[broker.id] = config
            self._silences.pop(broker.id, None)
            self.enqueue(StaticConfigAnswered(broker.id, config))
        finally:
            await link.close()

    def _remember_silence(self, broker: Broker, reason: str) -> None:
        last = self._find_silence(broker)
        pause_ms = FIRST_PAUSE_MS if last is None else min(2 * last.pause_ms, LONGEST_PAUSE_MS)
        ends_ms = self.clock.monotonic_ms() + pause_ms
        self._silences[broker.id] = _Silence(epoch=broker.epoch, reason=reason, pause_ms=pause_ms, ends_ms=ends_ms)
        if last is None or last.reason != reason:
            log.warning("a broker does not return the settings in its file", broker=broker.id, reason=reason)

    async def _see_first_answers(self) -> None:
        await self._first_answers.wait()

    def _check_first_answers(self) -> None:
        if self._are_all_asked and not self._asking:
            self._first_answers.set()
