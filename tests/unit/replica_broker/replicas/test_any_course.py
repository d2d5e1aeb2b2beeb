"""In any order of events, no acknowledged record is lost while a replica in sync survives, and the logs agree on
committed records. Processes crash and keep their writes, because these are in the page cache. A machine that loses
power loses all unflushed writes, and is out of the ISR before it comes back, because its session has expired. Elections
are clean."""

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
from tests.unit.examples import examples
from tests.unit.replica_broker.replicas.cluster import ORDERS, A, B, C, Cluster, play

BROKERS = (A, B, C)


@dataclass(slots=True)
class Course:
    """The events so far."""

    cluster: Cluster
    acknowledged: dict[int, str] = field(default_factory=dict)
    consumed: dict[int, str] = field(default_factory=dict)
    count: int = 0
    producing: set[asyncio.Task[None]] = field(default_factory=set)

    def broker(self, who: int) -> BrokerId:
        """Return the leader, or the broker that many places after it. Without a leader, count from the first broker."""
        leader = self.cluster.controller.states[ORDERS].leader
        return BROKERS[((BROKERS.index(leader) if leader in BROKERS else 0) + who) % len(BROKERS)]

    async def produce(self, broker: BrokerId, *, acks: int) -> None:
        """Send a message to a broker that may lead, or may wrongly believe so."""
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
        others = [member for member in state.isr if member != broker and member in self.cluster.running]
        if broker not in self.cluster.running or (loses_power and not others):
            return  # no other broker could be elected, so it would be in the ISR although it lost records
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
        """End all faults. After a while all logs must be equal, and have all acknowledged records."""
        cluster = self.cluster
        cluster.network.mend()
        cluster.controller.deaf_to.clear()
        for broker in BROKERS:
            await self.start(broker)
        await self.elect(None)
        leader = cluster.controller.states[ORDERS].leader
        assert leader != NO_LEADER
        await asyncio.gather(*self.producing)
        await cluster.wait_until_in_sync(leader, *BROKERS)
        await cluster.produce(leader, "the end")
        await cluster.wait_until(
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


WHO = st.integers(0, 2)
"""The leader as the controller knows it, the next broker, and the one after: so the interesting events are frequent."""
ACTIONS = st.one_of(
    st.tuples(st.just("produce"), st.just(0), st.sampled_from([-1, -1, 1])),
    st.tuples(st.just("produce"), WHO, st.sampled_from([-1, 1])),
    st.tuples(st.just("crash"), WHO, st.booleans()),
    st.tuples(st.just("bounce"), WHO),
    st.tuples(st.just("fail over"), WHO),
    st.tuples(st.just("start"), WHO),
    st.tuples(st.just("cut"), WHO),
    st.tuples(st.just("mend")),
    st.tuples(st.just("deafen"), WHO),
    st.tuples(st.just("hear")),
    st.tuples(st.just("lose answers"), st.integers(1, 3)),
    st.tuples(st.just("elect"), WHO, st.sets(WHO)),
    st.tuples(st.just("tell"), WHO),
)
STEPS = st.tuples(ACTIONS, st.sampled_from([0, 0, 1, 30, 150, 700, 2_500]))


async def take(course: Course, action: tuple[object, ...]) -> None:
    match action:
        case ("produce", int(who), int(acks)):
            await course.produce(course.broker(who), acks=acks)
        case ("crash", int(who), bool(loses_power)):
            await course.crash(course.broker(who), loses_power=loses_power)
        case ("bounce", int(who)):
            broker = course.broker(who)
            await course.crash(broker, loses_power=False)
            await course.start(broker)
        case ("fail over", int(who)):
            await course.crash(course.broker(0), loses_power=False)
            await course.elect(course.broker(who))
        case ("start", int(who)):
            await course.start(course.broker(who))
        case ("elect", int(who), set(tells)):
            told = [course.broker(each) for each in (0, 1, 2) if each in tells]
            await course.elect(course.broker(who), tells=told)
        case ("tell", int(who)):
            await course.cluster.tell(brokers=[course.broker(who)])
        case _:
            disturb(course, action)


def disturb(course: Course, action: tuple[object, ...]) -> None:
    cluster = course.cluster
    match action:
        case ("cut", int(who)):
            cluster.network.cut(course.broker(who), course.broker(who + 1))
        case ("mend",):
            cluster.network.mend()
        case ("deafen", int(who)):
            cluster.controller.deaf_to.add(course.broker(who))
        case ("hear",):
            cluster.controller.deaf_to.clear()
        case ("lose answers", int(count)):
            cluster.controller.answers_to_lose = count


def quick(broker: BrokerId) -> ReplicaSettings:
    return ReplicaSettings(
        broker_id=broker,
        max_time_lag_ms=2_000,
        flush_interval_ms=None,
        fetch_wait_max_ms=100,
        fetch_backoff_ms=200,
        high_watermark_checkpoint_interval_ms=500,
    )


@examples(40)
@given(st.lists(STEPS, max_size=40), st.integers(1, 2))
def test_nothing_acknowledged_is_lost_and_logs_agree(
    steps: list[tuple[tuple[object, ...], int]], min_insync: int
) -> None:
    async def scenario(cluster: Cluster) -> None:
        cluster.configs.min_insync = min_insync
        cluster.start(*BROKERS)
        await cluster.create(*BROKERS)
        course = Course(cluster)
        for action, pause_ms in steps:
            await take(course, action)
            await cluster.clock.sleep_ms(pause_ms)
            course.check()
        await course.end_well()

    run_fast(play(scenario, Cluster(settings=quick)))
