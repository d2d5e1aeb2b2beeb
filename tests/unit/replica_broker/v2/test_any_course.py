"""In any order of events at brokers of design v2, acknowledged records are on all replicas in the end."""

import random
from contextlib import suppress

import pytest

from controller_core.model.ids import BrokerId
from replica_broker.log.errors import LogError
from replica_broker.replicas.errors import ReplicaRefused
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.v2.cluster import ORDERS, A, B, C, Cluster, play

ALL = (A, B, C)
STEPS = 25


class Course:
    """One course of events, by a seed."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)
        self._sent = 0
        self._broken: BrokerId | None = None
        self.acknowledged: list[str] = []

    async def step(self) -> None:
        happens = self._random.choice(
            [self._produce] * 6
            + [self._kill, self._start, self._expire, self._cut, self._mend, self._break_a_directory]
        )
        await happens()
        await self._cluster.clock.sleep_ms(self._random.choice([0, 50, 2_000, 8_000, 40_000]))

    async def _produce(self) -> None:
        for broker in list(self._cluster.running):
            value, self._sent = f"message {self._sent}", self._sent + 1
            with suppress(ReplicaRefused, LogError):
                await self._cluster.produce(broker, value)
                self.acknowledged.append(value)

    async def _kill(self) -> None:
        if len(self._cluster.running) > 1:
            killed = self._some_running()
            await self._cluster.kill(killed)
            self._broken = None if self._broken == killed else self._broken

    async def _start(self) -> None:
        for broker in ALL:
            if broker not in self._cluster.running:
                await self._cluster.spawn(broker)

    async def _expire(self) -> None:
        self._cluster.zookeeper.expire(self._cluster.sessions[self._some_running()])

    async def _cut(self) -> None:
        self._cluster.network.cut(*self._random.sample(ALL, 2))

    async def _mend(self) -> None:
        self._cluster.network.mend()

    async def _break_a_directory(self) -> None:
        """Break a directory of one broker at a time, which has it back when it starts again."""
        broker = self._some_running()
        if self._broken is None and self._cluster.directories[broker].find_path(ORDERS) is not None:
            self._cluster.break_directory(broker)
            self._broken = broker

    async def start_with_all_directories(self) -> None:
        if self._broken is not None:
            await self._cluster.kill(self._broken)
        await self._start()

    def _some_running(self) -> BrokerId:
        return self._random.choice(sorted(self._cluster.running))


@pytest.mark.parametrize("seed", range(20))
def test_nothing_acknowledged_is_lost(seed: int) -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.configs.min_insync = 2
        await cluster.start(*ALL)
        await cluster.create(*ALL)
        course = Course(cluster, seed)
        for _ in range(STEPS):
            await course.step()
        await course._mend()
        await course.start_with_all_directories()
        leader = await cluster.wait_until_led()
        await cluster.wait_until_isr(*ALL)
        await cluster.produce(leader, "the last one", acks=1)
        expected = cluster.values(leader)
        assert [value for value in expected if value in course.acknowledged] == course.acknowledged
        for broker in ALL:
            await cluster.wait_until(
                lambda broker=broker: (  # type: ignore[misc]
                    ORDERS in cluster.running[broker].hosted and cluster.values(broker) == expected
                )
            )
        leading = [broker for broker in ALL if ORDERS in cluster.running[broker].opened]
        assert leading == [leader]

    run_fast(play(scenario))
