"""The ends of replicas' logs, asked of their brokers in the background, over separate connections, with a timeout.

A broker can tell where the records of one epoch end, but not which epoch is the last in the log. So that epoch is found
by binary search, between none and the partition's present leader epoch. A broker that has just started, and does not
know the partition yet, is asked again.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

import structlog

from controller_core.controller.loop.clock import Clock
from controller_core.controller.loop.side_by_side import ask_side_by_side
from controller_core.controller.loop.slices import slice_up
from controller_core.model.ids import NO_EPOCH, BrokerId, LeaderEpoch, TopicPartition
from controller_core.model.metadata import Broker, LogEnd
from controller_core.wire.link import BrokerLink, BrokerLinkFactory, LinkError

log = structlog.get_logger()

IN_ONE_REQUEST: Final = 1000
"""The maximum of partitions in a request. The response has some tens of kilobytes."""
PAUSE_MS: Final = 200
"""The pause before another request to a broker that answered about no partition."""

_EMPTY: Final = LogEnd(NO_EPOCH, 0)

_Ends = defaultdict[TopicPartition, dict[BrokerId, LogEnd]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnds:
    """Asks the brokers of one term."""

    links: BrokerLinkFactory
    clock: Clock

    async def ask(
        self, asked: Iterable[tuple[Broker, Mapping[TopicPartition, LeaderEpoch]]], timeout_ms: float
    ) -> dict[TopicPartition, dict[BrokerId, LogEnd]]:
        """Return the known ends of logs. `asked` has the partitions of each broker, with their present leader epochs.

        Logs without an answer in time have no entry.
        """
        ends: _Ends = defaultdict(dict)
        questions = (self._ask(broker, epochs, ends) for broker, epochs in asked)
        await ask_side_by_side(questions, self.clock, timeout_ms, name="how far a broker's logs reach")
        return dict(ends)

    async def _ask(self, broker: Broker, epochs: Mapping[TopicPartition, LeaderEpoch], ends: _Ends) -> None:
        searches = {partition: _Search(highest=epoch) for partition, epoch in epochs.items()}
        link = self.links(broker)
        silent_because = None
        try:
            while searches:
                answers, reason = await _answers(link, searches)
                if reason not in (None, silent_because):
                    log.info("a broker does not return the ends of its logs", broker=broker.id, reason=reason)
                silent_because = reason
                async for partition, end in slice_up(answers.items()):
                    search = searches[partition]
                    search.learn(end)
                    if search.is_over:
                        ends[partition][broker.id] = search.end
                        del searches[partition]
                if not answers:
                    await self.clock.sleep_ms(PAUSE_MS)
        finally:
            await link.close()


@dataclass(slots=True)
class _Search:
    """The binary search for the last epoch of one log, between `lowest` and `highest`. `end` belongs to `lowest`."""

    highest: LeaderEpoch
    lowest: LeaderEpoch = NO_EPOCH
    end: LogEnd = _EMPTY

    @property
    def is_over(self) -> bool:
        return self.lowest >= self.highest

    @property
    def middle(self) -> LeaderEpoch:
        return LeaderEpoch((self.lowest + self.highest + 1) // 2)

    def learn(self, end: LogEnd | None) -> None:
        """Narrow the search by the answer about the middle. None: the log has nothing of that epoch or later."""
        if end is None:
            self.highest = LeaderEpoch(self.middle - 1)
        else:
            self.lowest, self.end = self.middle, end


async def _answers(
    link: BrokerLink, searches: Mapping[TopicPartition, _Search]
) -> tuple[dict[TopicPartition, LogEnd | None], str | None]:
    """Return the broker's answer about each partition that it answers for, and the reason if some are missing."""
    answers: dict[TopicPartition, LogEnd | None] = {}
    partitions = iter(searches)
    while some := list(islice(partitions, IN_ONE_REQUEST)):
        try:
            told = await link.log_ends({partition: searches[partition].middle for partition in some})
        except LinkError as error:
            return answers, str(error)
        answers |= {partition: told[partition] for partition in some if partition in told}
    return answers, None if len(answers) == len(searches) else "it has no answer about some partitions"
