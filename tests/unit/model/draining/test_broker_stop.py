"""The partitions that a broker waits for before it stops, and the report of the waiting."""

import pytest

from controller_core.model.draining.broker_stop import (
    count_absent,
    count_missing_replicas,
    explain,
    explain_enough,
    find_obstacles,
    find_still_led,
    find_turn,
    find_wait_for_turn_s,
)
from controller_core.model.ids import (
    NO_LEADER,
    UNTOLD_BROKER_EPOCH,
    UNTOLD_CONTROLLER_EPOCH,
    UNTOLD_PARTITION_EPOCH,
    UNTOLD_TOPIC_VERSION,
    BrokerId,
    PartitionId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import Broker, LeaderAndIsr, PartitionState, ReplicaAssignment, TopicAssignment
from controller_core.model.snapshot import Controller, PartitionSnapshot, Snapshot, TopicSnapshot

BROKER = BrokerId(1)
T = TopicName("t")


def brokers(*numbers: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(number) for number in numbers)


def place(replicas: list[int], isr: list[int], number: int = 0, leader: int | None = None) -> PartitionSnapshot:
    first = BrokerId(leader) if leader is not None else BrokerId(isr[0]) if isr else NO_LEADER
    return PartitionSnapshot(
        partition=TopicPartition(T, PartitionId(number)),
        assignment=ReplicaAssignment(replicas=brokers(*replicas)),
        state=PartitionState(
            leader_and_isr=LeaderAndIsr(leader=first, isr=brokers(*isr)),
            controller_epoch=UNTOLD_CONTROLLER_EPOCH,
            partition_epoch=UNTOLD_PARTITION_EPOCH,
        ),
    )


def snapshot_of(
    *places: PartitionSnapshot, alive: tuple[int, ...] = (1, 2, 3), controller: int | None = None
) -> Snapshot:
    topic = TopicSnapshot(
        name=T,
        assignment=TopicAssignment(
            topic_id=None, partitions={place.partition.partition: place.assignment for place in places}
        ),
        version=UNTOLD_TOPIC_VERSION,
        states={place.partition.partition: place.state for place in places if place.state},
    )
    return Snapshot(
        version=1,
        cluster_id="c",
        controller=None if controller is None else Controller(id=BrokerId(controller)),
        brokers={number: Broker(id=number, epoch=UNTOLD_BROKER_EPOCH, endpoints=()) for number in brokers(*alive)},
        topics={T: topic},
    )


@pytest.mark.parametrize(
    ("replicas", "isr", "minimum", "why"),
    [
        ([1, 2, 3], [1, 2, 3], 2, "two remain"),
        ([1, 2, 3], [2, 3], 2, "it is not in the ISR anyway"),
        ([1, 2, 3], [1, 2], 1, "one remains and one is enough"),
        ([1], [1], 2, "nobody else has the partition"),
        ([1], [1], 1, "nobody else has the partition"),
        ([1, 2], [1, 2], 2, "there will never be two beside it, and all others are in sync"),
        ([1, 2, 3], [1, 2, 3], 3, "there will never be three beside it, and all others are in sync"),
        ([2, 3], [2], 2, "it has no replica of it"),
    ],
)
def test_a_partition_that_can_do_without_the_broker_is_not_waited_for(
    replicas: list[int], isr: list[int], minimum: int, why: str
) -> None:
    assert find_obstacles(snapshot_of(place(replicas, isr)), BROKER, {T: minimum}) == (), why


@pytest.mark.parametrize(
    ("replicas", "isr", "minimum", "needed", "missing"),
    [
        ([1, 2, 3], [1, 2], 2, 2, [3]),
        ([1, 2, 3], [1], 1, 1, [2, 3]),
        ([1, 2, 3], [2], 2, 2, [3]),
        ([1, 2], [1], 2, 1, [2]),
        ([1, 2, 3], [1, 2], 3, 2, [3]),
        ([1, 2], [], 1, 1, [2]),
    ],
)
def test_a_partition_with_too_few_replicas_in_sync_is_waited_for(
    replicas: list[int], isr: list[int], minimum: int, needed: int, missing: list[int]
) -> None:
    (found,) = find_obstacles(snapshot_of(place(replicas, isr)), BROKER, {T: minimum})
    assert (found.needed, found.missing) == (needed, brokers(*missing))


def test_waiting_makes_progress_when_a_replica_comes_into_sync_or_a_broker_comes_back() -> None:
    def measure(*isrs: list[int], alive: tuple[int, ...]) -> tuple[int, int]:
        seen = snapshot_of(*(place([1, 2, 3], isr, number) for number, isr in enumerate(isrs)), alive=alive)
        waiting = find_obstacles(seen, BROKER, {T: 2})
        return count_missing_replicas(waiting), count_absent(waiting, seen.brokers)

    assert measure([1], [1, 2], alive=(1,)) == (3, 2)
    assert measure([1, 2], [1, 2], alive=(1, 2)) == (2, 1)
    assert measure([1, 2], [1, 2], alive=(1, 2, 3)) == (2, 0)


def test_what_is_waited_for_is_said_in_one_bounded_line_with_complete_counts() -> None:
    seen = snapshot_of(*(place([1, 2, 3], [1, 2], number) for number in range(7)), place([1, 2], [1], 7), alive=(1, 2))
    text = explain(find_obstacles(seen, BROKER, {T: 2}), seen.brokers)
    assert text.startswith(
        "8 partitions would have too few replicas in sync: t-0 (ISR 1,2, min.insync.replicas 2, not in sync 3), t-1 "
    )
    assert text.endswith(
        " and 3 more; missing: broker 2 (alive, not in sync: 1 replica), broker 3 (not alive: 7 replicas)"
    )
    assert "t-5" not in text
    assert "\n" not in text


def test_what_cannot_be_helped_is_said() -> None:
    text = explain_enough(
        snapshot_of(place([1], [1]), place([1, 2], [1, 2], 1), place([1, 2, 3], [1, 2, 3], 2)), BROKER, {T: 2}
    )
    assert text == (
        "3 partitions of broker 1 can do without it; not waited for, no other replica, unavailable while it is stopped: "
        "t-0; not waited for, no more replicas than min.insync.replicas, acks=all is refused while it is stopped: t-1"
    )


def test_leaderships_that_nobody_can_take_over_are_not_counted() -> None:
    seen = snapshot_of(place([1], [1]), place([1, 2], [1, 2], 1), place([1, 2], [1, 2], 2, leader=2))
    assert [led.partition.partition for led in find_still_led(seen, BROKER)] == [1]


def test_brokers_that_are_stopped_together_have_turns_of_their_own() -> None:
    seen = snapshot_of(alive=(7, 3, 5, 1000))
    assert [find_turn(seen, broker) for broker in brokers(3, 5, 7)] == [0, 1, 2]


def test_without_zookeeper_every_broker_with_replicas_has_a_turn_of_its_own_at_any_time() -> None:
    seen = snapshot_of(place([7, 3], [7]), place([12, 3], [12], 1), alive=(3, 5, 12))

    def wait_s(broker: int, now_s: float, longest_round_s: float = 40.0) -> float:
        return find_wait_for_turn_s(seen, BrokerId(broker), now_s, turn_s=5.0, longest_round_s=longest_round_s)

    assert [wait_s(broker, 150.0) for broker in (3, 7, 12)] == [0.0, 5.0, 10.0]
    assert [wait_s(broker, 151.0) for broker in (3, 7, 12)] == [14.0, 4.0, 9.0]
    assert [wait_s(broker, 150.0, 6.0) for broker in (3, 7, 12)] == [0.0, 2.0, 4.0]
    assert wait_s(5, 151.0) == 0.0, "it has no replica"
    alone = snapshot_of(place([1], [1]))
    assert find_wait_for_turn_s(alone, BROKER, 151.0, turn_s=5.0, longest_round_s=40.0) == 0.0
