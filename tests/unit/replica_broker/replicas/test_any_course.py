"""Whatever happens, in any order: nothing that was acknowledged is lost while a replica in sync survives, and the logs
agree on what is committed.

Processes crash and keep what they wrote, as it is in the page cache; a machine that loses power loses what was not flushed,
all that is, and is out of the ISR before it comes back, as its session is over. Elections are clean.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import NO_LEADER, BrokerId
from replica_broker.log.errors import LogError
from replica_broker.replicas.errors import ReplicaRefused
from replica_broker.replicas.settings import ReplicaSettings
from simulation.fast_loop import run_fast
from tests.unit.replica_broker.replicas.cluster import A, B, C, ORDERS, Cluster, with_cluster

BROKERS = (A, B, C)


@dataclass(slots=True)
class Course:
    """What has happened so far."""

    cluster: Cluster
    acknowledged: dict[int, str] = field(default_factory=dict)
    consumed: dict[int, str] = field(default_factory=dict)
    count: int = 0
    producing: set[asyncio.Task[None]] = field(default_factory=set)

    async def produce(self, broker: BrokerId, *, acks: int) -> None:
        """Somebody sends to a broker that may lead, or take itself for the leader."""
        if broker not in self.cluster.running:
            return
        self.count += 1
        value = f"{self.count}"

        async def send() -> None:
            try:
                offset = await self.cluster.produce(broker, value, acks=acks, timeout_ms=5_000)
            except (ReplicaRefused, LogError):
                return
            if acks == -1:
                assert self.acknowledged.setdefault(offset, value) == value
                assert self.consumed.get(offset, value) == value

        task = asyncio.create_task(send())
        self.producing.add(task)
        await asyncio.sleep(0)

    async def crash(self, broker: BrokerId, *, loses_power: bool) -> None:
        state = self.cluster.controller.states[ORDERS]
        if broker not in self.cluster.running or (loses_power and set(state.isr) <= {broker}):
            return
        await self.cluster.crash(broker, loses_power=loses_power)
        if loses_power:
            await self.elect(None)

    async def start(self, broker: BrokerId) -> None:
        if broker not in self.cluster.running:
            self.cluster.start(broker)
            await self.cluster.tell(brokers=[broker])

    async def elect(self, preferred: BrokerId | None, *, tells: Iterable[BrokerId] | None = None) -> None:
        """The controller elects among the ISR's live members; the last one stays in it, dead or alive."""
        state = self.cluster.controller.states[ORDERS]
        live = [member for member in state.isr if member in self.cluster.running]
        leader = preferred if preferred in live else next(iter(live), NO_LEADER)
        await self.cluster.elect(leader, live or state.isr, tells=tells)

    def check(self) -> None:
        """Committed is committed, wherever it is known to be."""
        logs = {
            broker: (self.cluster.partition(broker).high_watermark, self.cluster.messages(broker))
            for broker in self.cluster.running
            if ORDERS in self.cluster.running[broker].hosted
        }
        for (_, (hw_1, log_1)), (_, (hw_2, log_2)) in combinations(logs.items(), 2):
            shared = range(min(hw_1, hw_2))
            assert [log_1.get(offset) for offset in shared] == [log_2.get(offset) for offset in shared]
        for high_watermark, log in logs.values():
            for offset in range(high_watermark):
                assert self.consumed.setdefault(offset, log[offset]) == log[offset]
                assert self.acknowledged.get(offset, log[offset]) == log[offset]

    async def end_well(self) -> None:
        """All faults end. After a while all logs are the same, and have all that was acknowledged."""
        cluster = self.cluster
        cluster.network.mend()
        cluster.controller.deaf_to.clear()
        for broker in BROKERS:
            await self.start(broker)
        await self.elect(None)
        leader = cluster.controller.states[ORDERS].leader
        assert leader != NO_LEADER
        await asyncio.gather(*self.producing)
        await cluster.until_in_sync(leader, *BROKERS)
        await cluster.produce(leader, "the end")
        await cluster.until(
            lambda: all(
                cluster.partition(each).high_watermark == cluster.partition(leader).replica.end_offset
                for each in BROKERS
            )
        )
        self.check()
        logs = [cluster.messages(broker) for broker in BROKERS]
        assert logs[0] == logs[1] == logs[2]
        assert self.acknowledged.items() <= logs[0].items()
        assert cluster.log_bytes(A) == cluster.log_bytes(B) == cluster.log_bytes(C)


BROKER = st.sampled_from(BROKERS)
PAIR = st.sampled_from(list(combinations(BROKERS, 2)))
STEPS = st.one_of(
    st.tuples(st.just("produce"), BROKER, st.sampled_from([-1, -1, 1])),
    st.tuples(st.just("pass"), st.sampled_from([1, 30, 150, 700, 2_500])),
    st.tuples(st.just("crash"), BROKER, st.booleans()),
    st.tuples(st.just("start"), BROKER),
    st.tuples(st.just("cut"), PAIR),
    st.tuples(st.just("mend")),
    st.tuples(st.just("deafen"), BROKER),
    st.tuples(st.just("hear")),
    st.tuples(st.just("lose answers"), st.integers(1, 3)),
    st.tuples(st.just("elect"), BROKER, st.sets(BROKER)),
    st.tuples(st.just("tell"), BROKER),
)


async def take(course: Course, step: tuple[object, ...]) -> None:
    cluster = course.cluster
    match step:
        case ("produce", int(broker), int(acks)):
            await course.produce(BrokerId(broker), acks=acks)
        case ("pass", int(duration_ms)):
            await cluster.clock.sleep_ms(duration_ms)
        case ("crash", int(broker), bool(loses_power)):
            await course.crash(BrokerId(broker), loses_power=loses_power)
        case ("start", int(broker)):
            await course.start(BrokerId(broker))
        case ("cut", (int(one), int(other))):
            cluster.network.cut(BrokerId(one), BrokerId(other))
        case ("mend",):
            cluster.network.mend()
        case ("deafen", int(broker)):
            cluster.controller.deaf_to.add(BrokerId(broker))
        case ("hear",):
            cluster.controller.deaf_to.clear()
        case ("lose answers", int(count)):
            cluster.controller.answers_to_lose = count
        case ("elect", int(broker), set(tells)):
            await course.elect(BrokerId(broker), tells=[each for each in BROKERS if each in tells])
        case ("tell", int(broker)):
            await cluster.tell(brokers=[BrokerId(broker)])


def quick(broker: BrokerId) -> ReplicaSettings:
    return ReplicaSettings(
        broker_id=broker,
        max_time_lag_ms=2_000,
        fetch_wait_max_ms=100,
        fetch_backoff_ms=200,
        high_watermark_checkpoint_interval_ms=500,
    )


@given(st.lists(STEPS, max_size=30), st.integers(1, 2))
def test_nothing_acknowledged_is_lost_and_logs_agree(steps: list[tuple[object, ...]], min_insync: int) -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.configs.min_insync = min_insync
        cluster.start(*BROKERS)
        await cluster.create(*BROKERS)
        course = Course(cluster)
        for step in steps:
            await take(course, step)
            course.check()
        await course.end_well()

    run_fast(with_cluster(scenario, Cluster(settings=quick)))
