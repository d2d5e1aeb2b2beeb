"""A process that stands by has read the state before it wins, and takes over exactly as one that reads it then."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from controller_core.controller.term.standby import GATHER_MS, Standby
from controller_core.model.ids import BrokerEpoch, BrokerId, TopicName
from controller_core.model.metadata import PartitionState
from controller_core.wire.codecs import entries
from controller_core.wire.codecs.entries import partition_start as start
from controller_core.wire.messages import ControlRequest
from controller_core.zk import paths
from controller_core.zk.delegating_session import DelegatingSession
from controller_core.zk.session import TreeWatch, TreeWatchUnsupported, ZkError, ZkNode
from simulation.checks import assert_no_surprises, assert_sound, simulate_cluster
from simulation.cluster import Cluster, tp
from simulation.process import Process
from simulation.zookeeper_session import SimulatedSession
from tests.unit.examples import examples

SECOND: Final = 2000
BROKERS: Final = (1, 2, 3, 4)
TOPICS: Final = ("orders", "events", "other")

ORDERS = tp("orders")


class Reads:
    """Counts the states that are read, at the server."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states = 0
        read = cluster.zk.tree.read

        def count_reads(path: str) -> ZkNode | None:
            self.states += path.endswith("/state")
            return read(path)

        monkeypatch.setattr(cluster.zk.tree, "read", count_reads)


async def serve_by_two(cluster: Cluster) -> tuple[Process, Process]:
    """A cluster with a topic, its controller, and one that stands by."""
    cluster.start_brokers(*BROKERS)
    first = await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3], [2, 3, 4])
    await cluster.settle()
    second = cluster.start_controller(SECOND)
    await cluster.settle()
    return first, second


async def succeed(cluster: Cluster, dying: Process, heir: Process) -> None:
    """Kill one controller, and let the standby take over."""
    await dying.kill()
    await cluster.settle()
    assert heir.is_active


async def succeed_without_reading(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, dying: Process, heir: Process
) -> None:
    """Kill one controller, and let the standby take over, which knows all states already and reads none."""
    reads = Reads(cluster, monkeypatch)
    await succeed(cluster, dying, heir)
    assert reads.states == 0
    assert_sound(cluster)


async def test_nothing_is_left_to_read_when_a_standby_takes_over(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await serve_by_two(cluster)
    cluster.create_topic("events", [3, 4], [4, 1])
    await cluster.settle()
    await succeed_without_reading(cluster, monkeypatch, first, second)


async def test_what_brokers_are_sent_was_written_before_the_standby_wins(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await serve_by_two(cluster)
    cluster.create_topic("events", [3, 4], [4, 1])
    await cluster.settle()
    written: list[object] = []

    def note_write(*what: Any) -> bytes:
        written.append(what)
        return start(*what)

    monkeypatch.setattr(entries, "partition_start", note_write)
    await first.kill()
    await cluster.settle()
    assert (second.is_active, written) == (True, [])
    assert_sound(cluster)
    cluster.kill_broker(4)
    await cluster.settle()
    assert written
    assert_sound(cluster)


async def test_what_was_prepared_for_other_brokers_is_not_sent(cluster: Cluster) -> None:
    first, second = await serve_by_two(cluster)
    cluster.kill_broker(2)
    await succeed(cluster, first, second)
    assert_sound(cluster)


async def test_what_changed_at_the_last_moment_is_read_when_a_standby_takes_over(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await serve_by_two(cluster)
    before = cluster.state(ORDERS).partition_epoch
    await cluster.alter_isr(ORDERS, (1, 2))
    reads = Reads(cluster, monkeypatch)
    await first.kill()
    await cluster.settle()
    assert cluster.state(ORDERS).partition_epoch > before
    assert second.is_active
    assert reads.states <= 2
    assert_sound(cluster)


async def test_a_process_that_does_not_stand_by_hot_reads_nothing_beforehand(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.settings = replace(cluster.settings, hot_standby=False)
    first, second = await serve_by_two(cluster)
    reads = Reads(cluster, monkeypatch)
    await succeed(cluster, first, second)
    assert reads.states == 2
    assert_sound(cluster)


async def test_a_standby_that_lost_its_connection_reads_everything_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await serve_by_two(cluster)
    cluster.zk.disconnect(second.session)
    await cluster.alter_isr(ORDERS, (1, 2))
    cluster.create_topic("events", [3, 4])
    await cluster.settle()
    cluster.zk.reconnect(second.session)
    await cluster.settle()
    await succeed_without_reading(cluster, monkeypatch, first, second)


async def test_a_standby_whose_connection_is_back_at_once_is_hot_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await serve_by_two(cluster)
    for _ in range(3):
        cluster.zk.drop_connection(second.session)
        await cluster.settle()
        assert second.metric("kontroller_standby_hot") == 1
    await cluster.alter_isr(ORDERS, (1, 2))
    await cluster.settle()
    await succeed_without_reading(cluster, monkeypatch, first, second)


async def test_an_error_that_nobody_expected_costs_what_was_read_and_it_is_read_again(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.surprises_expected = True
    first, second = await serve_by_two(cluster)
    second.life.errors = [ZkError("an answer that nobody knows")]
    await cluster.alter_isr(ORDERS, (1, 2))
    (logged,) = (entry for entry in cluster.logs if entry["event"] == "background work failed unexpectedly")
    assert (logged["work"], logged["reason"]) == ("standby", "ZkError('an answer that nobody knows')")
    assert second.metric("kontroller_standby_hot") == 1
    await succeed_without_reading(cluster, monkeypatch, first, second)


async def test_a_process_says_whether_it_stands_by_hot(cluster: Cluster) -> None:
    first, second = await serve_by_two(cluster)
    assert (first.metric("kontroller_standby_hot"), second.metric("kontroller_standby_hot")) == (0, 1)
    assert "hot" not in first.controller.check_readiness().make_json()
    assert second.controller.check_readiness().make_json()["hot"] is True
    cluster.zk.disconnect(second.session)
    await cluster.settle()
    assert second.metric("kontroller_standby_hot") == 0
    assert second.controller.check_readiness().make_json()["hot"] is False
    cluster.zk.reconnect(second.session)
    await cluster.settle()
    await succeed(cluster, first, second)
    assert second.metric("kontroller_standby_hot") == 0


async def test_who_resigned_stands_by_hot_again(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = await serve_by_two(cluster)
    cluster.zk.expire(first.session)
    await cluster.settle()
    assert second.is_active
    await cluster.alter_isr(ORDERS, (1, 2))
    await cluster.settle()
    await succeed_without_reading(cluster, monkeypatch, second, first)


async def test_a_server_without_such_watches_leaves_a_standby_cold(cluster: Cluster) -> None:
    class Old(DelegatingSession):
        async def watch_tree(self, path: str, watch: TreeWatch) -> Any:
            raise TreeWatchUnsupported("UnimplementedError")

    standby = Standby(Old(cluster.zk.session()), cluster.clock, is_enabled=True)
    standby.begin()
    await cluster.settle()
    known = standby.take()
    assert (known.znodes, known.state.topics, known.prepared) == ({}, {}, {})
    assert [entry["event"] for entry in cluster.logs] == ["hot standby is impossible: ZooKeeper must be 3.6 or newer"]
    await standby.close()


_TURNS_UNTIL_TOLD: Final = 3


class Late(DelegatingSession):
    """Something happens when a read was served already, and is notified before the answer arrives."""

    def __init__(self, session: SimulatedSession) -> None:
        super().__init__(session)
        self.meanwhile: list[tuple[str, Callable[[], object]]] = []
        """The events that happen at the next reads of paths, in order."""

    async def read_many(self, paths: Sequence[str]) -> list[ZkNode | None]:
        nodes = await super().read_many(paths)
        if self.meanwhile and self.meanwhile[0][0] in paths:
            self.meanwhile.pop(0)[1]()
            for _ in range(_TURNS_UNTIL_TOLD):
                await asyncio.sleep(0)
        return nodes


async def late_standby(cluster: Cluster) -> tuple[Late, Standby]:
    """Start a standby late, next to a controller with a topic; return it and its session."""
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    session = Late(cluster.zk.session())
    return session, Standby(session, cluster.clock, is_enabled=True)


@pytest.mark.parametrize("path", [paths.partition_state(ORDERS), paths.topic(ORDERS.topic)], ids=["state", "topic"])
async def test_what_changed_while_it_was_read_is_not_kept_but_read_again(cluster: Cluster, path: str) -> None:
    session, standby = await late_standby(cluster)
    content = cluster.data(path)
    assert content is not None
    kept: list[tuple[ZkNode | None, PartitionState | None]] = []

    def look() -> None:
        node, _ = standby.known.znodes.get(ORDERS.topic, (None, None))
        kept.append((node, standby.known.state.states.get(ORDERS)))

    session.meanwhile = [(path, lambda: cluster.put(path, content)), (path, look)]
    standby.begin()
    await cluster.settle()
    ((node, state),) = kept
    assert None in (node, state), "whoever took over in this moment would have had what it was before"
    node, state = standby.known.znodes[ORDERS.topic][0], standby.known.state.states[ORDERS]
    assert (node, state) == (cluster.zk.tree.read(paths.topic(ORDERS.topic)), cluster.state(ORDERS))
    await standby.close()


async def test_what_was_read_before_an_unexpected_error_is_handed_to_nobody(cluster: Cluster) -> None:
    cluster.surprises_expected = True
    session, standby = await late_standby(cluster)
    standby.begin()
    await cluster.settle()
    assert standby.is_hot

    def fail() -> None:
        raise ZkError("an answer that nobody knows")

    session.meanwhile = [(paths.partition_state(ORDERS), fail)]
    cluster.put(paths.partition_state(ORDERS), cluster.data(paths.partition_state(ORDERS)) or b"")
    await cluster.settle(GATHER_MS)
    assert (session.meanwhile, standby.is_hot, standby.known.znodes) == ([], False, {})
    await cluster.settle()
    assert standby.is_hot
    await standby.close()


async def test_unreadable_znodes_are_left_to_whoever_takes_over(cluster: Cluster) -> None:
    first, second = await serve_by_two(cluster)
    cluster.put(paths.topic(TopicName("broken")), b"no json")
    cluster.put(paths.partition_state(tp("orders", 1)), b"no json")
    await cluster.settle()
    await succeed(cluster, first, second)
    assert tp("orders", 1) not in second.term.state.states
    assert second.term.state.states[ORDERS] == cluster.state(ORDERS)


# Any history before the failover

Act = Callable[[Cluster], object]


def toggle(number: int) -> Act:
    return lambda c: c.kill_broker(number) if number in c.live else c.start_broker(number)


def create(name: str, replicas: Sequence[Sequence[int]]) -> Act:
    return lambda c: None if c.exists(paths.topic(TopicName(name))) else c.create_topic(name, *replicas)


def grow(name: str, replicas: Sequence[int]) -> Act:
    return lambda c: c.add_partitions(name, replicas) if c.exists(paths.topic(TopicName(name))) else None


def delete(name: str) -> Act:
    path = paths.delete_topic(TopicName(name))
    return lambda c: c.request_deletion(name) if not c.exists(path) and c.exists(paths.topic(TopicName(name))) else None


def remove(name: str) -> Act:
    return lambda c: c.remove_topic(name) if c.exists(paths.topic(TopicName(name))) else None


def reassign(name: str, target: Sequence[int]) -> Act:
    return lambda c: None if c.exists(paths.REASSIGN_PARTITIONS) else c.request_reassignment({tp(name): target})


def session_of_standby(fault: str) -> Act:
    def act(cluster: Cluster) -> None:
        session: SimulatedSession = cluster.processes[1].session
        {"drop": cluster.zk.drop_connection, "expire": cluster.zk.expire}[fault](session)

    return act


replica_lists = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True)
names = st.sampled_from(TOPICS)
acts = st.one_of(
    st.builds(toggle, st.sampled_from(BROKERS)),
    st.builds(create, names, st.lists(replica_lists, min_size=1, max_size=3)),
    st.builds(grow, names, replica_lists),
    st.builds(delete, names),
    st.builds(reassign, names, replica_lists),
    st.builds(session_of_standby, st.sampled_from(["drop", "expire"])),
)
turns = st.integers(0, 12)
histories = st.lists(st.tuples(acts, st.none() | turns), max_size=5)
"""The events, and the turns of the event loop before the next one. None: the next one waits until all is at rest."""
rude_histories = st.lists(acts | st.builds(remove, names), max_size=5)
"""Histories in which topics are also removed without a request, so that brokers have replicas unknown to a later
controller."""


async def live_through(cluster: Cluster, history: Sequence[tuple[Act, int | None]]) -> None:
    for act, pause in history:
        act(cluster)
        if pause is None:
            await cluster.settle()
        for _ in range(pause or 0):
            await asyncio.sleep(0)


async def takeover(
    history: Sequence[tuple[Act, int | None]], *, hot: bool
) -> tuple[dict[BrokerId, list[ControlRequest]], dict[str, Any]]:
    """Return the first requests of a second controller to each broker, and its state in memory, after the first one
    died at rest."""
    async with simulate_cluster() as cluster:
        cluster.settings = replace(cluster.settings, hot_standby=hot)
        first, second = await serve_by_two(cluster)
        await live_through(cluster, history)
        await cluster.settle(10 * GATHER_MS + 10_000)
        before = {number: len(broker.requests) for number, broker in cluster.brokers.items()}
        if second.is_active:
            first, second = second, first
        await first.kill()
        await cluster.settle()
        assert second.is_active
        state = second.term.state
        sent = {
            number: [_comparable(request) for request in broker.requests[before[number] :]]
            for number, broker in cluster.brokers.items()
        }
        return sent, {
            "states": dict(state.states),
            "topics": {name: (topic.topic_id, topic.partitions) for name, topic in state.topics.items()},
            "partitions": dict(state.partition_status),
            "replicas": dict(state.replica_status),
            "reassignments": dict(state.reassignments),
        }


def _comparable(request: ControlRequest) -> ControlRequest:
    """Remove the differences that do not matter to a broker. A hot standby makes one more transaction of ZooKeeper,
    from which broker epochs come. The order of topics does not matter."""
    topics: Any = tuple(sorted(request.topic_states, key=lambda topic: topic.topic_name))
    return replace(request, broker_epoch=BrokerEpoch(0), topic_states=topics)


@examples(15)
@given(rude_histories)
def test_a_hot_takeover_sends_and_knows_the_same_as_a_cold_one(history: list[Act]) -> None:
    at_rest = [(act, None) for act in history]
    assert asyncio.run(takeover(at_rest, hot=True)) == asyncio.run(takeover(at_rest, hot=False))


SMALLER_SUCCESSOR: Final = (toggle(1), toggle(1), delete("orders"), create("orders", [[1]]))
"""After these events, a starting broker is asked to forget a partition of a topic that it does not know yet."""


@examples(20)
@given(histories, turns, histories)
@example([(act, None) for act in SMALLER_SUCCESSOR], 0, [(toggle(2), None)])
@example([(act, 0) for act in SMALLER_SUCCESSOR], 0, [(toggle(2), 0)])
def test_whatever_happens_before_and_while_a_standby_wins_the_cluster_is_sound(
    before: list[tuple[Act, int | None]], pause: int, during: list[tuple[Act, int | None]]
) -> None:
    async def live() -> None:
        async with simulate_cluster() as cluster:
            first, _ = await serve_by_two(cluster)
            await live_through(cluster, before)
            await first.kill()
            for _ in range(pause):
                await asyncio.sleep(0)
            await live_through(cluster, during)
            for number in BROKERS:
                if number not in cluster.live:
                    cluster.start_broker(number)
            await cluster.settle(10_000)
            assert_sound(cluster)
            assert_no_surprises(cluster)

    asyncio.run(live())
