"""Log end offsets: the controller asks a broker until it knows them, also if the broker does not answer."""

import asyncio
import random
from collections.abc import Mapping, Sequence

import pytest
from structlog.testing import capture_logs

from controller_core.controller.sending.log_ends import IN_ONE_REQUEST, LogEnds
from controller_core.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, TopicPartition
from controller_core.model.metadata import Broker, LogEnd
from controller_core.wire.link import NotConnected
from controller_core.wire.messages import ControlRequest, ControlResponse
from simulation.broker_state import SimulatedReplicas
from simulation.cluster import tp
from simulation.virtual_time import VirtualClock, wait_until_quiet

TIMEOUT_MS = 5000


class Logs:
    """A broker with logs, each of which is a list of its epochs' end offsets, and the link to it."""

    def __init__(self, number: int, logs: Mapping[TopicPartition, Sequence[tuple[int, int]]]) -> None:
        self.broker = Broker(id=BrokerId(number), epoch=BrokerEpoch(1), endpoints=())
        self.logs = {each: [LogEnd(LeaderEpoch(epoch), end) for epoch, end in ends] for each, ends in logs.items()}
        self._state = SimulatedReplicas(self.broker.id, log_epochs=self.logs)
        self.questions = 0
        self.refusals = 0
        """The number of questions that it cannot answer at first."""
        self.is_away = False
        self.raises: Exception | None = None

    async def log_ends(self, epochs: Mapping[TopicPartition, LeaderEpoch]) -> Mapping[TopicPartition, LogEnd | None]:
        self.questions += 1
        assert len(epochs) <= IN_ONE_REQUEST
        if self.is_away:
            raise NotConnected("away")
        if self.raises is not None:
            raise self.raises
        if self.questions <= self.refusals:
            return {}
        return {each: self._state.find_epoch_end(each, epoch) for each, epoch in epochs.items() if each in self.logs}

    async def send(self, request: ControlRequest) -> ControlResponse:
        raise AssertionError(request)

    async def reach(self) -> None:
        raise AssertionError

    async def static_config(self, broker: BrokerId, names: object) -> Mapping[str, str]:
        raise AssertionError(broker, names)

    async def close(self) -> None:
        return


async def ask(epoch: int, *brokers: Logs) -> dict[TopicPartition, dict[BrokerId, LogEnd]]:
    links = {each.broker.id: each for each in brokers}
    clock = VirtualClock()
    asker = LogEnds(links=lambda broker: links[broker.id], clock=clock)
    asked = [(each.broker, dict.fromkeys(each.logs, LeaderEpoch(epoch))) for each in brokers]
    answer = asyncio.create_task(asker.ask(asked, TIMEOUT_MS))
    await wait_until_quiet()
    while not answer.done() and clock.pass_to_next(TIMEOUT_MS):
        await wait_until_quiet()
    return answer.result()


@pytest.mark.parametrize("seed", range(50))
async def test_the_end_of_whatever_log_is_found(seed: int) -> None:
    chance = random.Random(seed)
    epoch = chance.choice([0, 1, 2, 10, 1000, 2**31 - 2])
    epochs = sorted({chance.randint(0, epoch) for _ in range(chance.randint(0, 5))})
    ends = [(each, 10 * number) for number, each in enumerate(epochs)]
    broker = Logs(1, {tp("orders"): ends})
    found = await ask(epoch, broker)
    assert found == {tp("orders"): {1: ends[-1] if ends else (-1, 0)}}
    assert broker.questions <= 33


async def test_each_broker_says_it_of_its_own_logs() -> None:
    one = Logs(1, {tp("orders"): [(0, 5), (3, 9)], tp("orders", 1): [(0, 7)]})
    two = Logs(2, {tp("orders"): [(0, 5), (4, 6)]})
    assert await ask(6, one, two) == {tp("orders"): {1: (3, 9), 2: (4, 6)}, tp("orders", 1): {1: (0, 7)}}


async def test_a_broker_that_does_not_know_its_partitions_yet_is_asked_again() -> None:
    broker = Logs(1, {tp("orders"): [(0, 5)]})
    broker.refusals = 3
    assert await ask(1, broker) == {tp("orders"): {1: (0, 5)}}


async def test_who_cannot_be_reached_takes_no_longer_than_it_may_and_nothing_of_the_others() -> None:
    away, there = Logs(1, {tp("orders"): [(0, 5)]}), Logs(2, {tp("orders"): [(0, 4)]})
    away.is_away = True
    assert await ask(1, away, there) == {tp("orders"): {2: (0, 4)}}


async def test_more_partitions_than_one_request_carries_are_asked_about_in_several() -> None:
    broker = Logs(1, {tp("orders", number): [(0, number)] for number in range(2 * IN_ONE_REQUEST + 1)})
    found = await ask(0, broker)
    assert found == {tp("orders", number): {1: (0, number)} for number in range(2 * IN_ONE_REQUEST + 1)}


async def test_what_goes_wrong_with_one_broker_is_logged_and_is_not_the_others_trouble() -> None:
    strange, there = Logs(1, {tp("orders"): [(0, 5)]}), Logs(2, {tp("orders"): [(0, 4)]})
    strange.raises = ValueError("strange")
    with capture_logs() as logs:
        assert await ask(1, strange, there) == {tp("orders"): {2: (0, 4)}}
    assert [entry["log_level"] for entry in logs if "strange" in str(entry)] == ["error"]
