"""AlterPartition: the requests that a leader may send, and the error codes of the others, in the order of Kafka's
checks."""

from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicPartition,
)
from controller_core.model.metadata import LeaderRecoveryState, ReplicaAssignment
from controller_core.wire.messages import AlterPartitionRequest, AlterPartitionResponse, ErrorCode
from controller_core.wire.messages.alter_partition import AnsweredIsr
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import encode_partitions
from controller_core.zk.session import Create, CreateMode, SessionId, SetData
from simulation.checks import assert_sound
from simulation.cluster import Cluster, alter_partition, ids, tp

ORDERS = tp("orders")


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    """Four brokers; `orders` led by 1 at leader epoch 1 and partition epoch 1, with 3 out of the ISR."""
    cluster.start_brokers(1, 2, 3, 4)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    cluster.bounce_broker(3)
    await cluster.settle()
    assert cluster.leadership(ORDERS) == (1, [1, 2])
    assert (cluster.state(ORDERS).leader_and_isr.leader_epoch, cluster.state(ORDERS).partition_epoch) == (1, 1)
    return cluster


def request(
    cluster: Cluster,
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    sender: int = 1,
    leader_epoch: int = 1,
    partition_epoch: int = 1,
    partition: TopicPartition = ORDERS,
    recovery_state: int = 0,
    topic_id: TopicId | None = None,
) -> AlterPartitionRequest:
    view = replace(
        cluster.broker(1).replicas[ORDERS],
        leader_epoch=LeaderEpoch(leader_epoch),
        partition_epoch=PartitionEpoch(partition_epoch),
    )
    known_id = cluster.topic("orders").topic_id
    assert known_id is not None
    return alter_partition(
        cluster.broker(sender), topic_id or known_id, partition, view, ids(isr), recovery_state=recovery_state
    )


async def ask(cluster: Cluster, request: AlterPartitionRequest) -> AlterPartitionResponse:
    response = await cluster.ask(BrokerId(1), request)
    assert isinstance(response, AlterPartitionResponse)
    return response


async def result(cluster: Cluster, request: AlterPartitionRequest) -> AnsweredIsr:
    response = await ask(cluster, request)
    assert response.error_code is ErrorCode.none
    return response.topics[0].partitions[0]


async def test_a_replica_that_caught_up_joins_and_everybody_knows(served: Cluster) -> None:
    answer = await result(served, request(served))
    assert answer.outcome == served.state(ORDERS)
    assert served.leadership(ORDERS) == (1, [1, 2, 3])
    leadership, partition_epoch = served.state(ORDERS).leader_and_isr, served.state(ORDERS).partition_epoch
    assert (leadership.leader_epoch, partition_epoch) == (1, 2)
    assert_sound(served)


async def test_a_replica_that_fell_behind_leaves(served: Cluster) -> None:
    assert (await result(served, request(served, (1,)))).error_code is ErrorCode.none
    assert served.leadership(ORDERS) == (1, [1])
    assert_sound(served)


async def test_a_repeated_request_succeeds_again_without_a_write(served: Cluster) -> None:
    """Its answer was lost; and the check comes before that of the partition epoch (KAFKA-14144)."""
    first = await result(served, request(served))
    state = served.state(ORDERS)
    assert await result(served, request(served)) == first
    assert served.state(ORDERS) == state


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"partition_epoch": 2}, ErrorCode.not_controller),
        ({"leader_epoch": 2}, ErrorCode.not_controller),
        ({"leader_epoch": 0, "partition_epoch": 2}, ErrorCode.not_controller),
        ({"leader_epoch": 0}, ErrorCode.fenced_leader_epoch),
        ({"leader_epoch": 0, "isr": (1, 2)}, ErrorCode.fenced_leader_epoch),
        ({"partition_epoch": 0}, ErrorCode.invalid_update_version),
        ({"partition_epoch": 0, "isr": (1, 2, 9)}, ErrorCode.invalid_update_version),
        ({"isr": (1, 2, 9)}, ErrorCode.ineligible_replica),
        ({"isr": (1, 2, 4)}, ErrorCode.ineligible_replica),
        ({"isr": ()}, ErrorCode.invalid_request),
        ({"isr": (2, 3)}, ErrorCode.invalid_request),
        ({"isr": (1, 2, 2)}, ErrorCode.invalid_request),
        ({"recovery_state": 1}, ErrorCode.invalid_request),
        ({"recovery_state": 1, "isr": (1,)}, ErrorCode.invalid_request),
        ({"recovery_state": 7}, ErrorCode.invalid_request),
        ({"sender": 2, "isr": (2,)}, ErrorCode.invalid_request),
        ({"topic_id": TopicId(UUID(int=1))}, ErrorCode.unknown_topic_id),
        ({"partition": TopicPartition(ORDERS.topic, PartitionId(9))}, ErrorCode.unknown_topic_or_partition),
    ],
    ids=[
        "a partition epoch ahead of ours", "a leader epoch ahead of ours", "ahead before behind",
        "a leader epoch behind", "an old leader epoch though nothing would change", "a partition epoch behind",
        "an old partition epoch before the members", "a dead member", "a live broker that is not assigned",
        "an empty ISR", "an ISR without the leader", "a member twice", "recovering with others",
        "recovering again", "a recovery state that does not exist", "not the leader", "an unknown topic id",
        "an unknown partition",
    ],
)  # fmt: skip
async def test_what_a_leader_may_not_ask_is_refused_with_kafkas_error(
    served: Cluster, change: dict[str, object], error: ErrorCode
) -> None:
    before = served.state(ORDERS)
    assert (await result(served, request(served, **change))).error_code is error  # type: ignore[arg-type]  # a table of arguments
    assert served.state(ORDERS) == before
    assert served.active.terms == 1
    assert_sound(served)


@pytest.mark.parametrize(
    "sender",
    [{"broker_epoch": BrokerEpoch(1)}, {"broker_id": BrokerId(9)}, {"broker_epoch": BrokerEpoch(10**9)}],
    ids=["a former life", "nobody", "a life we do not know yet"],
)
async def test_a_sender_that_is_not_the_broker_we_know_is_refused_as_a_whole(
    served: Cluster, sender: dict[str, object]
) -> None:
    response = await ask(served, replace(request(served), **sender))  # type: ignore[arg-type]  # a table of arguments
    assert (response.error_code, response.topics) == (ErrorCode.stale_broker_epoch, ())


@pytest.mark.parametrize(("target", "member"), [([3, 4], 4), ([2, 4], 3)], ids=["adds", "removes"])
async def test_whom_a_reassignment_adds_or_removes_may_join_while_it_waits(
    served: Cluster, target: list[int], member: int
) -> None:
    served.request_reassignment({ORDERS: target})
    await served.settle()
    assert await served.alter_isr(ORDERS, [1, 2, member]) is ErrorCode.none
    assert served.leadership(ORDERS) == (1, [1, 2, member])
    assert_sound(served)


async def test_whom_a_reassignment_has_removed_may_not_join_again_though_it_is_not_deleted_yet(served: Cluster) -> None:
    served.request_reassignment({ORDERS: [1, 2]})
    served.broker(3).hang()
    await served.settle()
    assert served.active.term.state.reassignments[ORDERS].awaiting_deletion == frozenset(ids([3]))
    assert await served.alter_isr(ORDERS, [1, 2, 3]) is ErrorCode.ineligible_replica
    assert await served.alter_isr(ORDERS, [1]) is ErrorCode.none
    served.broker(3).resume()
    await served.settle()
    assert_sound(served)


async def test_who_is_in_sync_and_was_dropped_by_other_hands_does_not_keep_others_out(served: Cluster) -> None:
    served.active.term.state.set_assignment(ORDERS, ReplicaAssignment(replicas=ids([1, 3])))
    assert await served.alter_isr(ORDERS, [1, 2, 4]) is ErrorCode.ineligible_replica
    assert await served.alter_isr(ORDERS, [1, 2, 3]) is ErrorCode.none
    assert await served.alter_isr(ORDERS, [1, 3]) is ErrorCode.none
    assert await served.alter_isr(ORDERS, [1, 2, 3]) is ErrorCode.ineligible_replica


async def test_a_broker_that_is_shutting_down_does_not_join_again(served: Cluster) -> None:
    """Otherwise the leader would die together with it (KIP-841)."""
    await served.shut_down(2)
    assert served.leadership(ORDERS) == (1, [1])
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.ineligible_replica
    await served.join_isr(ORDERS, 3)
    assert served.leadership(ORDERS) == (1, [1, 3])


async def test_a_leader_that_shuts_down_lets_another_replica_join_and_hands_over(cluster: Cluster) -> None:
    """No other replica was in sync when it first asked, so it still leads."""
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    cluster.kill_broker(2)
    await cluster.settle()
    cluster.start_broker(2)
    await cluster.settle()
    first = await cluster.shut_down(1)
    assert first is not None
    assert len(first.remaining_partitions) == 1
    assert await cluster.alter_isr(ORDERS, [1, 2]) is ErrorCode.none
    second = await cluster.shut_down(1)
    assert second is not None
    assert second.remaining_partitions == ()
    assert cluster.leadership(ORDERS) == (2, [2])
    assert_sound(cluster)


async def test_a_reassignment_away_from_a_leader_that_shuts_down_ends(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2, 3)
    await cluster.serve()
    cluster.create_topic("orders", [1])
    await cluster.settle()
    cluster.request_reassignment({ORDERS: [2]})
    await cluster.settle()
    await cluster.shut_down(1)
    assert await cluster.alter_isr(ORDERS, [1, 2]) is ErrorCode.none
    await cluster.settle()
    assert cluster.leadership(ORDERS) == (2, [2])
    assert cluster.list_replicas(ORDERS) == [2]
    second = await cluster.shut_down(1)
    assert second is not None
    assert second.remaining_partitions == ()
    assert_sound(cluster)


@dataclass(slots=True)
class OlderLeader:
    """Broker 2, of before Kafka 3.3: it names topics by their names."""

    cluster: Cluster

    async def asks(self, *isr: int) -> object:
        """Send the leader's request for an ISR under the current epochs; return the outcome."""
        state = self.cluster.state(ORDERS)
        leader_epoch, partition_epoch = int(state.leader_and_isr.leader_epoch), int(state.partition_epoch)
        asked = request(self.cluster, isr, sender=2, leader_epoch=leader_epoch, partition_epoch=partition_epoch)
        topics = tuple(topic._replace(topic_id=None, name=ORDERS.topic) for topic in asked.topics)
        response = await self.cluster.ask(BrokerId(2), replace(asked, topics=topics))
        assert isinstance(response, AlterPartitionResponse)
        return response.topics[0].partitions[0].outcome


@pytest.mark.parametrize("times", [1, 2], ids=["once", "again"])
async def test_a_leader_of_before_3_3_may_take_who_is_shutting_down_however_often_he_has_asked(
    served: Cluster, times: int
) -> None:
    """Refused, one of Kafka 2.8 to 3.1 asks for nothing more under its leader epoch."""
    for _ in range(times):
        await served.shut_down(1)
    assert served.leadership(ORDERS) == (2, [2])
    assert await OlderLeader(served).asks(2, 1) == served.state(ORDERS)
    assert served.leadership(ORDERS) == (2, [2, 1])
    served.kill_broker(1)
    await served.settle()
    assert served.leadership(ORDERS) == (2, [2])
    assert_sound(served)


async def test_who_was_taken_while_he_shuts_down_leaves_the_isr_when_he_asks_again(served: Cluster) -> None:
    await served.shut_down(1)
    await served.shut_down(1)
    assert await OlderLeader(served).asks(2, 1) == served.state(ORDERS)
    await served.shut_down(1)
    assert served.leadership(ORDERS) == (2, [2])
    assert_sound(served)


async def test_a_leader_of_before_3_3_may_take_who_has_died_meanwhile_and_drops_him_itself(served: Cluster) -> None:
    served.kill_broker(1)
    await served.settle()
    leader = OlderLeader(served)
    assert await leader.asks(2, 9) is ErrorCode.ineligible_replica, "whoever is not assigned"
    assert await leader.asks(2, 1) == served.state(ORDERS)
    assert await leader.asks(2) == served.state(ORDERS)
    assert served.leadership(ORDERS) == (2, [2])
    served.start_brokers(1)
    await served.settle()
    assert await leader.asks(2, 1) == served.state(ORDERS)
    assert_sound(served)


async def test_a_bad_partition_holds_up_no_other_of_the_request(served: Cluster) -> None:
    served.create_topic("more", [1, 2])
    await served.settle()
    good = request(served)
    bad = request(served, topic_id=TopicId(UUID(int=1)))
    unknown = request(served, partition=TopicPartition(ORDERS.topic, PartitionId(9)))
    together = replace(
        good,
        topics=(
            *bad.topics,
            good.topics[0]._replace(partitions=(*unknown.topics[0].partitions, *good.topics[0].partitions)),
        ),
    )
    response = await ask(served, together)
    errors = [[answer.error_code for answer in topic.partitions] for topic in response.topics]
    assert errors == [[ErrorCode.unknown_topic_id], [ErrorCode.unknown_topic_or_partition, ErrorCode.none]]
    assert served.leadership(ORDERS) == (1, [1, 2, 3])


async def test_a_state_that_somebody_else_wrote_is_refused_and_read_again(served: Cluster) -> None:
    foreign = codecs.encode_partition_state(served.state(ORDERS).leader_and_isr, served.active.term.identity.epoch)
    served.write(SetData(path=paths.partition_state(ORDERS), data=foreign))
    assert (await result(served, request(served))).error_code is ErrorCode.invalid_update_version
    assert served.active.term.state.states[ORDERS].partition_epoch == 2
    assert (await result(served, request(served, partition_epoch=2))).error_code is ErrorCode.none
    assert_sound(served)


async def test_an_unclean_leader_reports_that_it_recovered(cluster: Cluster) -> None:
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2], config={"unclean.leader.election.enable": "true"})
    await cluster.settle()
    for number in (2, 1):
        cluster.kill_broker(number)
        await cluster.settle()
    cluster.start_broker(2)
    await cluster.settle()
    recovering = cluster.state(ORDERS).leader_and_isr
    assert (recovering.leader, recovering.leader_recovery_state) == (2, LeaderRecoveryState.RECOVERING)
    assert await cluster.alter_isr(ORDERS, [2]) is ErrorCode.none
    assert cluster.state(ORDERS).leader_and_isr.leader_recovery_state is LeaderRecoveryState.RECOVERED
    assert_sound(cluster)


async def test_isrs_that_an_old_broker_wrote_itself_are_taken_over(served: Cluster) -> None:
    """Brokers before 2.7 wrote the ISR to ZooKeeper and left a notification."""
    grown = replace(served.state(ORDERS).leader_and_isr, isr=ids([1, 2, 3]))
    epoch = served.active.term.identity.epoch
    served.write(SetData(path=paths.partition_state(ORDERS), data=codecs.encode_partition_state(grown, epoch)))
    for data in (encode_partitions([ORDERS, tp("unknown")]), b"garbled"):
        served.write(
            Create(path=paths.ISR_CHANGE_PREFIX, data=data, mode=CreateMode.PERSISTENT_SEQUENTIAL),
            owner=SessionId(0),
        )
    await served.settle()
    assert served.zk.tree.children(paths.ISR_CHANGE_NOTIFICATION) == ()
    assert served.broker(4).metadata.partitions[ORDERS].isr == (1, 2, 3)
    assert_sound(served)
