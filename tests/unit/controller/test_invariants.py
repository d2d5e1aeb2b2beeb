"""In any order of events the invariants hold, and a cluster at rest is sound.

Hypothesis chooses the events: brokers die and return, users send requests, controllers crash, sessions expire and
answers get lost, with or without rests in between. Every write to ZooKeeper is checked for changes that may lose
messages or confuse a broker. Now and then the cluster comes to rest, and its state is compared.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from structlog.testing import capture_logs

from controller_core.controller.sending import channels
from controller_core.controller.term import groups
from controller_core.controller.term.refusals import LONGEST_PAUSE_MS
from controller_core.model.ids import NO_LEADER, PartitionId, TopicName, TopicPartition
from controller_core.model.metadata import LeaderAndIsr
from controller_core.wire.messages import (
    ControlRequest,
    ErrorCode,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from controller_core.zk import paths
from simulation.checks import (
    assert_configs_are_recorded,
    assert_no_log_is_nobodys,
    assert_no_surprises,
    assert_sound,
)
from simulation.cluster import Cluster, alter_reassignments, tp
from simulation.mortality import Life
from simulation.virtual_time import wait_until_quiet
from tests.unit.examples import examples
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to

BROKERS: Final = (1, 2, 3, 4, 5)
TOPICS: Final = ("clean", "unclean", "other")
UNCLEAN: Final = {"unclean.leader.election.enable": "true"}
CLEAN: Final = {name: name != "unclean" for name in TOPICS}

brokers = st.sampled_from(BROKERS)
topics = st.sampled_from(TOPICS)
replica_lists = st.lists(brokers, min_size=1, max_size=3, unique=True)
steps = st.integers(1, 6)
REFUSALS: Final = (
    ErrorCode.unknown_server_error,
    ErrorCode.cluster_authorization_failed,
    ErrorCode.stale_controller_epoch,
)
KINDS: Final[tuple[type[ControlRequest], ...]] = (LeaderAndIsrRequest, UpdateMetadataRequest)


class Writes:
    """Checks every write of a partition's state for changes that must never be written."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[tuple[TopicPartition, int], LeaderAndIsr] = {}
        self.violations: list[str] = []
        cluster.zk.observers.append(self._look)

    def _look(self) -> None:
        for name in self._cluster.zk.tree.children(paths.TOPICS) or ():
            for number in self._cluster.zk.tree.children(paths.partitions(TopicName(name))) or ():
                self._look_at(TopicPartition(TopicName(name), PartitionId(int(number))))

    def _look_at(self, partition: TopicPartition) -> None:
        node = self._cluster.zk.tree.read(paths.partition_state(partition))
        if node is None:
            return
        now = self._cluster.state(partition).leader_and_isr
        # A znode that was created again belongs to another topic of the same name, whose epochs begin again.
        before = self._known.get((partition, node.czxid))
        self._known[partition, node.czxid] = now
        if before is None or now == before:
            return
        problem = _problem(before, now, is_clean=CLEAN[partition.topic])
        if problem is not None:
            self.violations.append(f"{partition}: {problem}: from {before} to {now}")


def _problem(before: LeaderAndIsr, now: LeaderAndIsr, *, is_clean: bool) -> str | None:
    joined = set(now.isr) - set(before.isr)
    if not now.isr:
        return "the ISR is empty"
    if now.leader not in (*now.isr, NO_LEADER):
        return "the leader is not in the ISR"
    if now.leader_epoch < before.leader_epoch:
        return "the leader epoch fell"
    if now.leader != before.leader and now.leader_epoch == before.leader_epoch:
        return "the leader changed and the leader epoch did not rise"
    # Only a leader knows that a follower has caught up, and it reports that within its own leader epoch.
    if is_clean and joined and (now.leader_epoch != before.leader_epoch or before.leader == NO_LEADER):
        return "somebody joined the ISR without having been reported by the leader"
    if is_clean and now.leader not in (*before.isr, NO_LEADER):
        return "somebody leads who was not in sync"
    return None


class ClusterMachine(RuleBasedStateMachine):
    """A cluster to which things happen."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.context = ExitStack()
        self.cluster = Cluster()
        self.cluster.logs = self.context.enter_context(capture_logs())
        self.writes = Writes(self.cluster)
        self.journal = self.cluster.journal = MemoryJournal()
        self.stopping: set[int] = set()
        """Brokers whose controlled shutdown has begun: they stop soon, whatever the answer."""
        self.asked: list[asyncio.Task[Any]] = []
        self.expired: set[int] = set()
        """Brokers whose processes live on without a session."""
        self.is_broken = False
        self.has_history = True
        """True if no controller epoch was used twice."""

    def run(self, act: Coroutine[Any, Any, object]) -> None:
        try:
            self.loop.run_until_complete(act)
        except BaseException:
            self.is_broken = True
            raise

    def do(self, *, rest: bool) -> None:
        """Let the last event run its course. Without a rest, it gets only its first turns, so that the next event
        interrupts it."""
        self.run(self.cluster.settle() if rest else asyncio.sleep(0))

    @initialize()
    def begin(self) -> None:
        async def begin() -> None:
            self.cluster.start_brokers(*BROKERS)
            await self.cluster.serve()
            self.cluster.create_topic("clean", [1, 2, 3], [2, 3])
            await self.cluster.settle()

        self.run(begin())

    # Brokers

    @rule(number=brokers, rest=st.booleans())
    def kill_or_start(self, number: int, rest: bool) -> None:
        async def act() -> None:
            self.stopping.discard(number)
            if number in self.cluster.live:
                self.cluster.kill_broker(number)
            else:
                self.cluster.start_broker(number)
                self.expired.discard(number)

        self.run(act())
        self.do(rest=rest)

    @rule(number=brokers, rest=st.booleans())
    def bounce(self, number: int, rest: bool) -> None:
        async def act() -> None:
            self.stopping.discard(number)
            if number in self.cluster.live:
                self.cluster.bounce_broker(number)

        self.run(act())
        self.do(rest=rest)

    @rule(number=brokers, rest=st.booleans())
    def expire_or_register_again(self, number: int, rest: bool) -> None:
        """A broker's session ends while its process lives on, and then it is back with all that it had in memory."""

        async def act() -> None:
            self.stopping.discard(number)
            if number in self.cluster.live:
                self.cluster.expire_broker(number)
                self.expired.add(number)
            elif number in self.expired:
                self.cluster.register_again(number)
                self.expired.discard(number)

        self.run(act())
        self.do(rest=rest)

    @rule(number=brokers)
    def hang(self, number: int) -> None:
        self.cluster.broker(number).hang()

    @rule(number=brokers)
    def resume(self, number: int) -> None:
        self.cluster.broker(number).resume()

    @rule(number=brokers, kind=st.sampled_from((LeaderAndIsrRequest, StopReplicaRequest)))
    def delay_a_copy(self, number: int, kind: type[ControlRequest]) -> None:
        """The connection of the next request of a kind dies, and a copy of it is on its way still."""
        self.cluster.broker(number).delay_next(kind)

    @rule(number=brokers, rest=st.booleans())
    def read_delayed_copies(self, number: int, rest: bool) -> None:
        self.cluster.broker(number).read_delayed()
        self.do(rest=rest)

    @rule(number=brokers, name=topics, partition=st.integers(0, 3), rest=st.booleans())
    def lose_log_dir(self, number: int, name: str, partition: int, rest: bool) -> None:
        async def act() -> None:
            if number in self.cluster.live:
                self.cluster.fail_log_dir(number, tp(name, partition))

        self.run(act())
        self.do(rest=rest)

    @rule(number=brokers, rest=st.booleans())
    def start_with_log_dirs_repaired(self, number: int, rest: bool) -> None:
        self.run(self._repair(number))
        self.do(rest=rest)

    async def _repair(self, number: int) -> None:
        self.cluster.broker(number).offline.clear()
        self.stopping.discard(number)
        if number in self.cluster.live:
            self.cluster.bounce_broker(number)
        else:
            self.cluster.start_broker(number)
            self.expired.discard(number)

    @rule(number=brokers)
    def shut_down(self, number: int) -> None:
        async def act() -> None:
            if number in self.cluster.live and self.cluster.broker(number).metadata.controller_id is not None:
                self.stopping.add(number)
                await self.cluster.shut_down(number)

        self.run(act())

    @rule()
    def replicate(self) -> None:
        self.run(self.cluster.replicate())

    # People

    @rule(name=topics, replicas=st.lists(replica_lists, min_size=1, max_size=3), rest=st.booleans())
    def create_topic_or_grow_it(self, name: str, replicas: list[list[int]], rest: bool) -> None:
        async def act() -> None:
            config = UNCLEAN if not CLEAN[name] else None
            if not self.cluster.exists(paths.topic(TopicName(name))):
                self.cluster.create_topic(name, *replicas, config=config)
            elif len(self.cluster.topic(name).partitions) < 4:
                self.cluster.add_partitions(name, replicas[0])

        self.run(act())
        self.do(rest=rest)

    @rule(name=topics, partition=st.integers(0, 3), replicas=replica_lists, rest=st.booleans())
    def reassign(self, name: str, partition: int, replicas: list[int], rest: bool) -> None:
        async def act() -> None:
            self.cluster.request_reassignment({tp(name, partition): replicas})

        self.run(act())
        self.do(rest=rest)

    @rule(name=topics, partition=st.integers(0, 3), replicas=st.none() | replica_lists, rest=st.booleans())
    def ask_to_reassign(self, name: str, partition: int, replicas: list[int] | None, rest: bool) -> None:
        """Send a client's request. Without replicas it cancels the reassignment. There may be no controller to
        answer."""

        async def act() -> None:
            process = self.cluster.processes[-1]
            if process.is_active:
                request = alter_reassignments({tp(name, partition): replicas})
                self.asked.append(asyncio.create_task(process.answer(request)))

        self.run(act())
        self.do(rest=rest)

    @rule(name=topics, rest=st.booleans())
    def elect(self, name: str, rest: bool) -> None:
        async def act() -> None:
            self.cluster.request_election(*(tp(name, partition) for partition in range(4)))

        self.run(act())
        self.do(rest=rest)

    @rule(name=topics, rest=st.booleans())
    def delete(self, name: str, rest: bool) -> None:
        async def act() -> None:
            if not self.cluster.exists(paths.delete_topic(TopicName(name))):
                self.cluster.request_deletion(name)

        self.run(act())
        self.do(rest=rest)

    @rule(name=topics, replicas=st.integers(1, 3), rest=st.booleans())
    def alter_topic_config(self, name: str, replicas: int, rest: bool) -> None:
        async def act() -> None:
            if self.cluster.exists(paths.topic(TopicName(name))):
                own = {} if CLEAN[name] else UNCLEAN
                self.cluster.alter_config(f"topics/{name}", {**own, "min.insync.replicas": str(replicas)})

        self.run(act())
        self.do(rest=rest)

    @rule(number=st.none() | brokers, rate=st.none() | st.integers(1, 9), rest=st.booleans())
    def alter_broker_config(self, number: int | None, rate: int | None, rest: bool) -> None:
        async def act() -> None:
            config = {} if rate is None else {"leader.replication.throttled.rate": str(rate)}
            self.cluster.alter_config(f"brokers/{paths.DEFAULT_ENTITY if number is None else number}", config)

        self.run(act())
        self.do(rest=rest)

    # Controllers and their ZooKeeper

    @rule()
    def crash_controller(self) -> None:
        async def act() -> None:
            await self.cluster.processes[-1].kill()
            self.cluster.start_controller()
            await wait_until_quiet()

        self.run(act())

    @rule(step=steps)
    def controller_dies_with_a_write(self, step: int) -> None:
        life = self.cluster.processes[-1].life
        life.last_write = life.writes + step

    @rule(step=steps)
    def controller_dies_before_a_request(self, step: int) -> None:
        life = self.cluster.processes[-1].life
        life.last_request = life.requests + step

    @rule()
    def expire_session(self) -> None:
        async def act() -> None:
            self.cluster.zk.expire(self.cluster.processes[-1].session)

        self.run(act())

    @rule(step=steps, is_applied=st.booleans())
    def lose_connection(self, step: int, is_applied: bool) -> None:
        session = self.cluster.processes[-1].session
        lose = self.cluster.zk.lose_next_response if is_applied else self.cluster.zk.fail_before_apply
        lose(session, after_writes=step - 1)

    # The invariants

    @precondition(lambda self: self.cluster.processes)
    @rule()
    def settle(self) -> None:
        self.run(self._settle())

    async def _settle(self) -> None:
        for broker in self.cluster.brokers.values():
            broker.resume()
        while self.stopping:
            self.cluster.kill_broker(self.stopping.pop())
        process = self.cluster.processes[-1]
        await self.cluster.settle()
        if process.life.is_over:
            await process.kill()
            self.cluster.start_controller(life=Life())
            await self.cluster.settle()
        process.life.last_write = process.life.last_request = None
        assert_sound(self.cluster)
        assert_no_log_is_nobodys(self.cluster)
        assert self.writes.violations == []
        assert_configs_are_recorded(self.cluster)
        if self.has_history:
            assert_journal_folds_to(self.cluster.active.term.state, self.journal)

    def teardown(self) -> None:
        try:
            if self.cluster.processes and not self.is_broken:
                self.run(self._end())
        finally:
            self.loop.run_until_complete(self._close())
            self.context.close()
            self.loop.close()
        if not self.is_broken:
            assert_no_surprises(self.cluster)

    async def _close(self) -> None:
        for task in self.asked:
            task.cancel()
        await asyncio.gather(*self.asked, return_exceptions=True)
        await self.cluster.close()

    async def _end(self) -> None:
        """Let all brokers come back with all their logs. Then every request must be carried out."""
        await self._settle()
        for number in BROKERS:
            await self._repair(number)
        await self._settle()
        await self.cluster.replicate()
        await self._settle()
        state = self.cluster.active.term.state
        assert not state.deletions
        assert not state.reassignments
        assert not self.cluster.exists(paths.REASSIGN_PARTITIONS)
        for partition in state.all_partitions():
            assert set(self.cluster.leadership(partition)[1]) == set(self.cluster.list_replicas(partition)), partition


TestCluster = ClusterMachine.TestCase
TestCluster.settings = examples(15, stateful_step_count=30)


class GroupsOfOne(ClusterMachine):
    """The same with each partition in a group of its own: long events pause often, and requests run in between."""

    def __init__(self) -> None:
        super().__init__()
        patch = self.context.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(groups, "MOST_IN_A_GROUP", 1)
        patch.setattr(groups, "GROUPS_AT_ONCE", 2)


TestClusterInGroupsOfOne = GroupsOfOne.TestCase
TestClusterInGroupsOfOne.settings = TestCluster.settings


class FewRequestsWait(ClusterMachine):
    """The same with brokers that are out of reach for a while, for which most requests are dropped.

    Never most of the brokers, because the controller would give up the role.
    """

    def __init__(self) -> None:
        super().__init__()
        patch = self.context.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(channels, "MOST_WAITING", 2)
        self.cluster.settings = replace(self.cluster.settings, brokers_timeout_ms=6000)
        self.away: set[int] = set()

    @rule(number=brokers)
    def cut_off(self, number: int) -> None:
        live = self.cluster.live
        if number in live and len(self.away | {number}) < len(live) / 2:
            self.away.add(number)
            self.cluster.broker(number).cut_off()

    @rule(number=brokers, rest=st.booleans())
    def reconnect(self, number: int, rest: bool) -> None:
        self._reconnect(number)
        self.do(rest=rest)

    def _reconnect(self, number: int) -> None:
        if number in self.away:
            self.away.discard(number)
            if number in self.cluster.live or number in self.expired:
                self.cluster.broker(number).reconnect()

    async def _settle(self) -> None:
        for number in BROKERS:
            self._reconnect(number)
        while not self.cluster.processes[-1].is_active and not self.cluster.processes[-1].life.is_over:
            await self.cluster.settle()
        await super()._settle()


TestClusterWhereFewRequestsWait = FewRequestsWait.TestCase
TestClusterWhereFewRequestsWait.settings = TestCluster.settings


class BrokersRefuse(ClusterMachine):
    """The same with brokers that refuse requests, and a user who lowers the controller epoch in ZooKeeper."""

    @rule(number=brokers, error=st.sampled_from(REFUSALS), rest=st.booleans())
    def refuse_the_next(self, number: int, error: ErrorCode, rest: bool) -> None:
        self.cluster.broker(number).answer_next_with(error)
        self.do(rest=rest)

    @rule(number=brokers, error=st.sampled_from(REFUSALS[:2]), kind=st.sampled_from(KINDS))
    def refuse_from_now_on(self, number: int, error: ErrorCode, kind: type[ControlRequest]) -> None:
        self.cluster.broker(number).refuse_from_now_on(error, kind)

    @rule(number=brokers)
    def obey(self, number: int) -> None:
        self.cluster.broker(number).obey()

    @rule(rest=st.booleans())
    def lower_the_controller_epoch(self, rest: bool) -> None:
        async def act() -> None:
            self.cluster.put(paths.CONTROLLER_EPOCH, b"1")

        self.has_history = False
        self.run(act())
        self.do(rest=rest)

    async def _settle(self) -> None:
        for broker in self.cluster.brokers.values():
            broker.resume()
            broker.obey()
        await self.cluster.settle(passing_ms=2 * LONGEST_PAUSE_MS)
        await super()._settle()


TestClusterWhereBrokersRefuse = BrokersRefuse.TestCase
TestClusterWhereBrokersRefuse.settings = TestCluster.settings
