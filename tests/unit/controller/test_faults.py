"""Every procedure is interrupted everywhere: at each write to ZooKeeper and at each control request.

The interruption is the death of the controller, after which another one takes over, or the loss of its connection to
ZooKeeper before or after the write was applied. Each time the cluster must end in the same state as without it.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest
from kio.schema.update_features.v1.request import FeatureUpdateKey, UpdateFeaturesRequest
from kio.static.primitive import i8, i16

from controller_core.model.features import FinalizedFeatures, UpgradeType
from controller_core.model.ids import TopicName
from controller_core.model.throttles import Move
from controller_core.wire.messages import ErrorCode
from controller_core.zk import codecs, paths
from controller_core.zk.throttle_writes import Throttles
from simulation.checks import assert_no_log_is_nobodys, assert_sound, simulate_cluster
from simulation.cluster import CONTROLLER, Cluster, ids, tp
from simulation.mortality import Life
from simulation.process import Process

ORDERS = tp("orders")
MAX_STEPS = 200

OLD, NEW = {1, 2, 3}, {4, 5, 6}


class Procedure(ABC):
    """A request, and the state in which it must end."""

    brokers: tuple[int, ...] = (1, 2, 3)
    steps_at_least = 1
    """The minimum number of writes. An interruption that never happens would prove nothing."""

    async def prepare(self, cluster: Cluster) -> None:
        cluster.start_brokers(*self.brokers)
        await cluster.serve()
        cluster.create_topic("orders", [1, 2, 3], [2, 3, 1])
        await cluster.settle()

    @abstractmethod
    async def act(self, cluster: Cluster) -> None:
        """Asks for it, and lets the brokers do their part."""

    @abstractmethod
    def check(self, cluster: Cluster) -> None:
        """The end, when everything is at rest."""


class Reassignment(Procedure):
    brokers = (1, 2, 3, 4, 5, 6)
    steps_at_least = 7

    async def act(self, cluster: Cluster) -> None:
        if not cluster.exists(paths.REASSIGN_PARTITIONS) and cluster.list_replicas(ORDERS) == [1, 2, 3]:
            self.stages = observe_stages(cluster)
            cluster.request_reassignment({ORDERS: [4, 5, 6]})
        await cluster.replicate()

    def check(self, cluster: Cluster) -> None:
        assert cluster.list_replicas(ORDERS) == [4, 5, 6]
        assert not cluster.assignment(ORDERS).is_being_reassigned
        leader, isr = cluster.leadership(ORDERS)
        assert leader in isr
        assert set(isr) == NEW
        assert not cluster.exists(paths.REASSIGN_PARTITIONS)
        for number in OLD:
            assert ORDERS not in cluster.broker(number).logs, f"{number} keeps a log that nobody owns"
        assert self.stages == sorted(self.stages), "no row of the specification's table comes twice"
        assert {0, 5} <= set(self.stages)


class ThrottledReassignment(Reassignment):
    """The throttle is set first, and removed with the reassignment by the controller of that time."""

    async def prepare(self, cluster: Cluster) -> None:
        await super().prepare(cluster)
        moves = {ORDERS: Move(origin=ids([1, 2, 3]), target=ids([4, 5, 6]))}
        await Throttles(cluster.zk.session()).set("somebody", moves, 1000)

    def check(self, cluster: Cluster) -> None:
        super().check(cluster)
        assert not cluster.zk.tree.children(paths.THROTTLES)
        for path in (paths.topic_config(ORDERS.topic), *(paths.broker_config(broker) for broker in cluster.live)):
            assert codecs.decode_config(cluster.data(path) or b"") == {}, path


class TakingBack(Procedure):
    """A reassignment that is under way, with a new replica in sync, is cancelled."""

    brokers = (1, 2, 3, 4, 5, 6)
    steps_at_least = 4

    async def prepare(self, cluster: Cluster) -> None:
        await super().prepare(cluster)
        cluster.request_reassignment({ORDERS: [4, 5, 6]})
        await cluster.settle()
        await cluster.join_isr(ORDERS, 4)

    async def act(self, cluster: Cluster) -> None:
        if cluster.assignment(ORDERS).is_being_reassigned:
            cluster.request_reassignment({ORDERS: [1, 2, 3]})
        await cluster.settle()
        if not cluster.processes[-1].life.is_over:
            await cluster.replicate()

    def check(self, cluster: Cluster) -> None:
        assert cluster.list_replicas(ORDERS) == [1, 2, 3]
        assert not cluster.exists(paths.REASSIGN_PARTITIONS)
        assert set(cluster.leadership(ORDERS)[1]) == OLD
        assert not cluster.zk.tree.children(paths.REMOVED_REPLICAS)
        assert_no_log_is_nobodys(cluster)


class AwayFromTheDead(Procedure):
    """A replica is moved away from a broker that is down, and returns when the topic is another one of that name."""

    brokers = (1, 2, 3, 4)
    steps_at_least = 8

    async def act(self, cluster: Cluster) -> None:
        if 3 in cluster.live and cluster.list_replicas(ORDERS) == [1, 2, 3]:
            self.former = cluster.topic("orders").topic_id
            cluster.kill_broker(3)
            cluster.request_reassignment({tp("orders", number): [1, 2, 4] for number in (0, 1)})
        await cluster.replicate()
        if self._is_former(cluster) and not cluster.exists(paths.REASSIGN_PARTITIONS):
            cluster.put(paths.delete_topic(ORDERS.topic), b"")
        await cluster.settle()
        if not cluster.exists(paths.topic(ORDERS.topic)):
            cluster.create_topic("orders", [3, 4], [1, 2])
        if 3 not in cluster.live and not self._is_former(cluster):
            cluster.start_broker(3)
        await cluster.replicate()

    def _is_former(self, cluster: Cluster) -> bool:
        return cluster.exists(paths.topic(ORDERS.topic)) and cluster.topic("orders").topic_id == self.former

    def check(self, cluster: Cluster) -> None:
        assert set(cluster.leadership(ORDERS)[1]) == {3, 4}
        assert not cluster.zk.tree.children(paths.REMOVED_REPLICAS)
        assert_no_log_is_nobodys(cluster)


def observe_stages(cluster: Cluster) -> list[int]:
    """The rows of the specification's table that AR and leader/ISR go through; the third one by one replica."""
    stages: list[int] = []

    def note() -> None:
        leader, isr = cluster.leadership(ORDERS)
        stages.append(stage(set(cluster.list_replicas(ORDERS)), leader, set(isr)))

    note()
    cluster.zk.observers.append(note)
    return stages


def stage(assigned: set[int], leader: int, isr: set[int]) -> int:
    match assigned == OLD, assigned == OLD | NEW, assigned == NEW, leader in NEW:
        case True, _, _, False if isr == OLD:
            return 0
        case _, True, _, False if isr < OLD | NEW and isr >= OLD:
            return 1
        case _, True, _, False if isr == OLD | NEW:
            return 2
        case _, True, _, True if isr == OLD | NEW:
            return 3
        case _, True, _, True if isr == NEW:
            return 4
        case _, _, True, True if isr == NEW:
            return 5
    raise AssertionError(f"AR {assigned}, {leader}/{isr} is no row of the specification's table")


class TopicCreation(Procedure):
    brokers = (1, 2, 3, 4, 5)
    steps_at_least = 3

    async def act(self, cluster: Cluster) -> None:
        if not cluster.exists(paths.topic(TopicName("new"))):
            cluster.create_topic("new", [1, 2], [CONTROLLER, 3], has_id=False)
            cluster.add_partitions("orders", [4, 5])
        await cluster.replicate()

    def check(self, cluster: Cluster) -> None:
        assert cluster.leadership(tp("new", 0)) == (1, [1, 2])
        assert cluster.leadership(tp("new", 1))[0] in cluster.list_replicas(tp("new", 1))
        assert CONTROLLER not in cluster.list_replicas(tp("new", 1))
        assert cluster.leadership(tp("orders", 2)) == (4, [4, 5])


class TopicDeletion(Procedure):
    steps_at_least = 3

    async def act(self, cluster: Cluster) -> None:
        if cluster.exists(paths.topic(TopicName("orders"))) and not cluster.exists(paths.delete_topic(ORDERS.topic)):
            cluster.put(paths.topic_config(ORDERS.topic), b'{"version":1,"config":{}}')
            cluster.request_deletion("orders")
        await cluster.replicate()

    def check(self, cluster: Cluster) -> None:
        for path in (paths.topic(ORDERS.topic), paths.topic_config(ORDERS.topic), paths.delete_topic(ORDERS.topic)):
            assert not cluster.exists(path), path
        for broker in cluster.brokers.values():
            assert broker.logs == {}
            assert broker.metadata.partitions == {}


class DeletionOfMoving(TopicDeletion):
    """The deletion of a topic with one partition that is being moved, throttled, and one whose old replicas are being
    deleted."""

    brokers = (1, 2, 3, 4, 5, 6)
    steps_at_least = 5

    async def prepare(self, cluster: Cluster) -> None:
        await super().prepare(cluster)
        moves = {ORDERS: Move(origin=ids([1, 2, 3]), target=ids([4, 5, 6]))}
        await Throttles(cluster.zk.session()).set("somebody", moves, 1000)
        cluster.request_reassignment({ORDERS: [4, 5, 6], tp("orders", 1): [3, 4]})
        await cluster.settle()
        await cluster.join_isr(ORDERS, 4)
        cluster.broker(2).hang()
        await cluster.join_isr(tp("orders", 1), 4)

    async def act(self, cluster: Cluster) -> None:
        await super().act(cluster)
        cluster.broker(2).resume()
        await cluster.settle()

    def check(self, cluster: Cluster) -> None:
        super().check(cluster)
        assert not cluster.exists(paths.REASSIGN_PARTITIONS)
        assert not cluster.zk.tree.children(paths.THROTTLES)
        assert not cluster.zk.tree.children(paths.REMOVED_REPLICAS)
        assert_no_log_is_nobodys(cluster)


class PartitionAdded(Procedure):
    steps_at_least = 3

    async def act(self, cluster: Cluster) -> None:
        added = tp("orders", 2)
        if 2 not in cluster.topic("orders").partitions and not cluster.zk.tree.children(paths.PARTITIONS_ADD):
            cluster.request_of_partition(paths.PARTITIONS_ADD, added, [3, 1])
        await cluster.settle()

    def check(self, cluster: Cluster) -> None:
        assert cluster.leadership(tp("orders", 2)) == (3, [3, 1])
        assert cluster.zk.tree.children(paths.PARTITIONS_ADD) == ()


class PartitionsRemoved(Procedure):
    """The removal of the last two partitions of a topic. The upper one has a replica on a broker that is down, and
    returns."""

    steps_at_least = 6

    async def prepare(self, cluster: Cluster) -> None:
        cluster.ours = {1, 2, 3}
        await super().prepare(cluster)
        cluster.add_partitions("orders", [1, 2], [3, 2])
        await cluster.settle()

    async def act(self, cluster: Cluster) -> None:
        if 3 in cluster.live and not cluster.exists(paths.PARTITIONS_REMOVE):
            cluster.kill_broker(3)
            for number in (2, 3):
                cluster.request_of_partition(paths.PARTITIONS_REMOVE, tp("orders", number))
        await cluster.settle()
        if 3 not in cluster.live:
            cluster.start_broker(3)
        await cluster.replicate()

    def check(self, cluster: Cluster) -> None:
        assert list(cluster.topic("orders").partitions) == [0, 1]
        assert cluster.zk.tree.children(paths.PARTITIONS_REMOVE) == ()
        assert set(cluster.zk.tree.children(paths.partitions(ORDERS.topic)) or ()) == {"0", "1"}
        assert_no_log_is_nobodys(cluster)


class SingleReassignment(Reassignment):
    """A reassignment that is requested in a znode of its own."""

    async def act(self, cluster: Cluster) -> None:
        request = paths.partition_request(paths.PARTITIONS_REASSIGNED, ORDERS)
        if not cluster.exists(request) and cluster.list_replicas(ORDERS) == [1, 2, 3]:
            self.stages = observe_stages(cluster)
            cluster.request_of_partition(paths.PARTITIONS_REASSIGNED, ORDERS, [4, 5, 6])
        await cluster.replicate()

    def check(self, cluster: Cluster) -> None:
        super().check(cluster)
        assert cluster.zk.tree.children(paths.PARTITIONS_REASSIGNED) == ()


class BrokerFailure(Procedure):
    steps_at_least = 2

    async def act(self, cluster: Cluster) -> None:
        if 1 in cluster.live:
            cluster.kill_broker(1)
        await cluster.replicate()

    def check(self, cluster: Cluster) -> None:
        assert [cluster.leadership(tp("orders", number)) for number in (0, 1)] == [(2, [2, 3])] * 2


class RollingRestart(Procedure):
    """A rolling restart: one broker after the other requests a controlled shutdown, stops, and comes back."""

    steps_at_least = 4

    def __init__(self) -> None:
        self.waiting = [1, 2]

    async def act(self, cluster: Cluster) -> None:
        while self.waiting and any(process.is_active for process in cluster.processes):
            number = self.waiting[0]
            if number in cluster.live:
                await self._relieve(cluster, number)
                cluster.kill_broker(number)
                await cluster.settle()
            if not any(process.is_active for process in cluster.processes):
                return
            cluster.start_broker(number)
            self.waiting.pop(0)
            await cluster.replicate()
        await cluster.replicate()

    async def _relieve(self, cluster: Cluster, number: int) -> None:
        for _ in range(3):
            if any(process.is_active for process in cluster.processes):
                response = await cluster.shut_down(number)
                if response is None or (response.error_code is ErrorCode.none and not response.remaining_partitions):
                    return

    def check(self, cluster: Cluster) -> None:
        for number in (0, 1):
            assert set(cluster.leadership(tp("orders", number))[1]) == {1, 2, 3}


class PreferredElection(Procedure):
    async def prepare(self, cluster: Cluster) -> None:
        await super().prepare(cluster)
        cluster.bounce_broker(1)
        await cluster.replicate()
        assert cluster.leadership(ORDERS)[0] == 2

    async def act(self, cluster: Cluster) -> None:
        if cluster.leadership(ORDERS)[0] == 2 and not cluster.exists(paths.PREFERRED_REPLICA_ELECTION):
            cluster.request_election(ORDERS)
        await cluster.replicate()

    def check(self, cluster: Cluster) -> None:
        assert cluster.leadership(ORDERS)[0] == 1
        assert not cluster.exists(paths.PREFERRED_REPLICA_ELECTION)


class TakeOver(Procedure):
    """A new controller finds a dead leader, a running reassignment, a half-deleted topic and an election."""

    brokers = (1, 2, 3, 4, 5, 6)
    steps_at_least = 8

    async def prepare(self, cluster: Cluster) -> None:
        await super().prepare(cluster)
        cluster.create_topic("doomed", [1, 2], [2, 3])
        cluster.create_topic("moving", [2, 3])
        await cluster.settle()
        cluster.request_reassignment({tp("moving"): [5, 6]})
        await cluster.settle()
        cluster.kill_broker(6)
        await cluster.settle()
        await cluster.active.kill()
        cluster.kill_broker(1)
        cluster.request_deletion("doomed")
        cluster.create_topic("new", [CONTROLLER, 4])
        cluster.request_election(tp("orders", 0), tp("orders", 1))
        cluster.start_controller(life=Life())

    async def act(self, cluster: Cluster) -> None:
        await cluster.replicate()
        if 6 not in cluster.live:
            cluster.start_brokers(1, 6)
        await cluster.replicate()

    def check(self, cluster: Cluster) -> None:
        assert cluster.list_replicas(tp("moving")) == [5, 6]
        assert not cluster.exists(paths.topic(TopicName("doomed")))
        assert CONTROLLER not in cluster.list_replicas(tp("new"))
        assert not cluster.exists(paths.PREFERRED_REPLICA_ELECTION)
        assert set(cluster.leadership(tp("orders"))[1]) == OLD


class FeatureUpdate(Procedure):
    """A new controller finds features of an old format and a broker that does not support them, and is asked to lower
    one. A client that gets no answer reads the features, and asks again if they have not changed."""

    brokers = (1, 2)
    steps_at_least = 3

    async def prepare(self, cluster: Cluster) -> None:
        for number in (1, 2):
            cluster.support(number, f=(1, 5), g=(1, 2))
        cluster.support(3, f=(1, 2), g=(1, 2))
        cluster.put(
            paths.FEATURE, b'{"version":1,"status":1,"features":{"f":{"min_version_level":1,"max_version_level":3}}}'
        )
        cluster.start_brokers(1, 2, 3)
        cluster.create_topic("orders", [3, 1, 2], [1, 2, 3])
        self.epochs: list[int] = []
        cluster.zk.observers.append(lambda: self._note(cluster))
        cluster.start_controller(life=Life())

    async def act(self, cluster: Cluster) -> None:
        await cluster.settle()
        active = next((process for process in cluster.processes if process.is_active), None)
        if active is not None and self._levels(cluster) == {"f": 3}:
            updates = (("f", 2, UpgradeType.SAFE_DOWNGRADE), ("g", 1, UpgradeType.UPGRADE))
            answer = asyncio.create_task(active.answer(_update_features(*updates)))
            await cluster.settle()
            if answer.done():
                assert {result.error_code for result in answer.result().results} == {ErrorCode.none}
            answer.cancel()
        await cluster.replicate()

    def check(self, cluster: Cluster) -> None:
        assert cluster.data(paths.FEATURE) == (
            b'{"version":2,"status":1,"features":{"f":{"max_version_level":2},"g":{"max_version_level":1}}}'
        )
        assert self.epochs == sorted(set(self.epochs)), (
            "the epoch rises with every change, and nothing is written twice"
        )
        assert self.epochs[-1] == 2
        known = cluster.active.term.state.finalized_features
        assert known == FinalizedFeatures(features={"f": 2, "g": 1}, epoch=2)
        for number in (0, 1):
            assert set(cluster.leadership(tp("orders", number))[1]) == {1, 2, 3}, "broker 3 may take part now"

    def _levels(self, cluster: Cluster) -> dict[str, int]:
        return dict(codecs.decode_features(cluster.data(paths.FEATURE) or b"").features)

    def _note(self, cluster: Cluster) -> None:
        node = cluster.zk.tree.read(paths.FEATURE)
        assert node is not None
        assert self._levels(cluster) in ({"f": 3}, {"f": 2, "g": 1}), "all of an update, or nothing"
        if node.version not in self.epochs[-1:]:
            self.epochs.append(node.version)


def _update_features(*updates: tuple[str, int, UpgradeType]) -> UpdateFeaturesRequest:
    keys = (FeatureUpdateKey(feature=f, max_version_level=i16(v), upgrade_type=i8(t)) for f, v, t in updates)
    return UpdateFeaturesRequest(feature_updates=tuple(keys))


Interruption = Callable[[Cluster, Process, int], None]


def dies_with_the_write(_: Cluster, process: Process, step: int) -> None:
    process.life.last_write = process.life.writes + step


def dies_before_the_request(_: Cluster, process: Process, step: int) -> None:
    process.life.last_request = process.life.requests + step


def connection_is_lost_before_the_write(cluster: Cluster, process: Process, step: int) -> None:
    cluster.zk.fail_before_apply(process.session, after_writes=step - 1)


def answer_to_the_write_is_lost(cluster: Cluster, process: Process, step: int) -> None:
    cluster.zk.lose_next_response(process.session, after_writes=step - 1)


def has_happened(process: Process) -> bool:
    life, connection = process.life, process.session
    if life.last_write is not None or life.last_request is not None:
        return life.is_over
    return connection.loss is None


async def interrupt_at(procedure: Procedure, interrupt: Interruption, step: int) -> bool:
    """Runs a procedure with one interruption to its end; whether it took as many steps as that."""
    async with simulate_cluster() as cluster:
        await procedure.prepare(cluster)
        process = cluster.processes[-1]
        interrupt(cluster, process, step)
        await procedure.act(cluster)
        if process.life.is_over:
            await process.kill()
            await cluster.serve()
            await procedure.act(cluster)
        procedure.check(cluster)
        assert_sound(cluster)
        return has_happened(process)


PROCEDURES: Final = (
    Reassignment, ThrottledReassignment, TakingBack, AwayFromTheDead,
    TopicCreation, TopicDeletion, DeletionOfMoving, PartitionAdded, PartitionsRemoved, SingleReassignment,
    BrokerFailure, RollingRestart, PreferredElection, TakeOver, FeatureUpdate,
)  # fmt: skip
EACH_NIGHT: Final = (dies_before_the_request, connection_is_lost_before_the_write)
"""Interruptions that run each night. There are more requests than writes, and a connection lost before a write differs
little from one lost after it."""


def cases() -> Iterator[Any]:
    nightly = pytest.mark.nightly("interrupts the procedure once at each of its steps, which takes seconds in all")
    for procedure in PROCEDURES:
        for interrupt in (dies_with_the_write, answer_to_the_write_is_lost, *EACH_NIGHT):
            is_always = interrupt not in EACH_NIGHT or procedure in (Reassignment, TopicDeletion)
            yield pytest.param(
                procedure,
                interrupt,
                id=f"{procedure.__name__}-{interrupt.__name__}",
                marks=() if is_always else nightly,
            )


@pytest.mark.parametrize(("procedure", "interrupt"), list(cases()))
async def test_an_interruption_anywhere_changes_nothing_about_the_end(
    procedure: type[Procedure], interrupt: Interruption
) -> None:
    for step in range(1, MAX_STEPS):
        try:
            happened = await interrupt_at(procedure(), interrupt, step)
        except AssertionError as error:
            error.add_note(f"{procedure.__name__}, {interrupt.__name__} {step}")
            raise
        if not happened:
            break
    assert procedure.steps_at_least < step < MAX_STEPS
