"""Brokers answer without obeying: they are sent everything again, or others lead."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from controller_core.controller.term.controller_epochs import STEPS
from controller_core.controller.term.refusals import FIRST_PAUSE_MS, LONGEST_PAUSE_MS
from controller_core.controller.znodes import partition_states
from controller_core.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, PartitionEpoch, TopicId, TopicPartition
from controller_core.wire.messages import ErrorCode, LeaderAndIsrRequest, UpdateMetadataRequest
from controller_core.zk import codecs, paths
from controller_core.zk.session import Delete, SetData, WriteOp
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to

ORDERS, MORE, OTHERS = tp("orders"), tp("more"), tp("others")


def find_refusing_brokers(cluster: Cluster) -> dict[int, str]:
    """Return the brokers that have not obeyed, and why, from the details of `/readyz`."""
    details = cluster.active.controller.check_readiness().details["brokers_not_obeying"]
    assert isinstance(details, dict)
    assert cluster.active.metric("kontroller_brokers_not_obeying") == len(details)
    return details


async def test_a_new_leader_that_refuses_once_is_sent_it_again_and_leads(served: Cluster) -> None:
    served.broker(2).answer_next_with(ErrorCode.unknown_server_error)
    served.kill_broker(1)
    await served.settle(passing_ms=0)
    assert not served.broker(2).leads(ORDERS)
    assert find_refusing_brokers(served) == {2: "LeaderAndIsr: unknown_server_error"}
    await served.settle()
    assert served.broker(2).leads(ORDERS)
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


async def test_where_a_new_leader_refuses_again_another_replica_in_sync_leads(served: Cluster) -> None:
    served.broker(2).refuse_from_now_on(ErrorCode.unknown_server_error, LeaderAndIsrRequest)
    served.kill_broker(1)
    await served.settle(passing_ms=10_000)
    assert served.leadership(ORDERS) == (3, [3])
    assert served.broker(3).leads(ORDERS)
    assert served.active.metric("kontroller_offline_replicas") == 1
    served.broker(2).obey()
    await served.settle(passing_ms=2 * LONGEST_PAUSE_MS)
    await served.replicate()
    assert served.leadership(ORDERS) == (3, [3, 2])
    assert served.active.metric("kontroller_offline_replicas") == 0
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


@pytest.mark.parametrize("error", [ErrorCode.cluster_authorization_failed, ErrorCode.unknown_server_error])
async def test_where_all_brokers_refuse_no_leader_and_no_isr_changes(served: Cluster, error: ErrorCode) -> None:
    for number in (1, 2, 3):
        served.broker(number).refuse_from_now_on(error, LeaderAndIsrRequest)
    served.create_topic("more", [1, 2, 3])
    await served.settle(passing_ms=10 * LONGEST_PAUSE_MS)
    assert served.leadership(MORE) == (1, [1, 2, 3])
    assert served.leadership(ORDERS) == (1, [1, 2, 3])
    assert set(find_refusing_brokers(served)) == {1, 2, 3}
    for number in (1, 2, 3):
        served.broker(number).obey()
    await served.settle(passing_ms=2 * LONGEST_PAUSE_MS)
    assert served.broker(1).leads(MORE)
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


async def test_a_leader_keeps_what_nobody_else_could_lead_and_leads_when_it_obeys(served: Cluster) -> None:
    served.broker(3).refuse_from_now_on(ErrorCode.unknown_server_error, LeaderAndIsrRequest)
    served.create_topic("more", [3])
    await served.settle(passing_ms=10_000)
    assert served.leadership(MORE) == (3, [3])
    served.broker(3).obey()
    await served.settle(passing_ms=2 * LONGEST_PAUSE_MS)
    assert served.broker(3).leads(MORE)
    assert_sound(served)


async def test_a_starting_broker_that_refuses_its_first_metadata_learns_of_all_partitions(served: Cluster) -> None:
    served.start_broker(4)
    served.broker(4).answer_next_with(ErrorCode.unknown_server_error)
    served.broker(4).answer_next_with(ErrorCode.unknown_server_error)
    await served.settle()
    assert ORDERS in served.broker(4).metadata.partitions
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


async def test_a_leader_with_a_log_of_an_earlier_topic_makes_way_for_another_replica(served: Cluster) -> None:
    served.broker(1).logs[MORE] = TopicId(UUID(int=99))
    served.create_topic("more", [1, 2, 3])
    await served.settle()
    assert served.leadership(MORE) == (2, [2, 3])
    assert served.broker(2).leads(MORE)
    assert served.broker(3).metadata.partitions[MORE].offline_replicas == (1,)
    del served.broker(1).logs[MORE]
    served.bounce_broker(1)
    await served.replicate()
    assert served.leadership(MORE) == (2, [2, 3, 1])
    assert_sound(served)


async def test_a_leader_that_cannot_open_a_log_makes_way_and_returns_when_it_can(served: Cluster) -> None:
    served.broker(1).unopened.add(MORE)
    served.create_topic("more", [1, 2, 3])
    await served.settle()
    assert served.leadership(MORE) == (2, [2, 3])
    assert served.broker(2).leads(MORE)
    assert find_refusing_brokers(served) == {1: "LeaderAndIsr: unknown_server_error"}
    served.broker(1).unopened.clear()
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    await served.replicate()
    assert served.leadership(MORE) == (2, [2, 3, 1])
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


async def test_the_only_replica_that_cannot_be_opened_is_tried_again_now_and_then(served: Cluster) -> None:
    served.broker(1).unopened.add(MORE)
    served.create_topic("more", [1])
    await served.settle(passing_ms=10 * LONGEST_PAUSE_MS)
    assert served.leadership(MORE) == (-1, [1])
    assert served.active.metric("kontroller_offline_partitions") == 1
    assert served.state(MORE).leader_and_isr.leader_epoch < 30
    served.broker(1).unopened.clear()
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert served.broker(1).leads(MORE)
    assert_sound(served)


async def test_a_broker_that_refuses_for_ever_is_asked_ever_more_seldom(served: Cluster) -> None:
    served.broker(3).refuse_from_now_on(ErrorCode.unknown_server_error, UpdateMetadataRequest)
    served.create_topic("more", [1, 2])
    await served.settle(passing_ms=10 * LONGEST_PAUSE_MS)
    refused = served.broker(3).requests_of(UpdateMetadataRequest)
    assert len(refused) < 80
    assert find_refusing_brokers(served) == {3: "UpdateMetadata: unknown_server_error"}
    served.broker(3).obey()
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert MORE in served.broker(3).metadata.partitions
    assert_sound(served)


async def test_a_broker_that_refuses_for_want_of_rights_obeys_when_it_has_them(served: Cluster) -> None:
    served.broker(3).answer_next_with(ErrorCode.cluster_authorization_failed)
    served.create_topic("more", [1, 2])
    await served.settle()
    assert find_refusing_brokers(served) == {3: "UpdateMetadata: cluster_authorization_failed"}
    assert MORE not in served.broker(3).metadata.partitions
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


async def test_a_broker_that_shuts_down_and_refuses_is_not_made_to_follow_again(served: Cluster) -> None:
    served.broker(3).answer_next_with(ErrorCode.unknown_server_error)
    await served.shut_down(3)
    await served.settle()
    assert served.leadership(ORDERS) == (1, [1, 2])
    assert find_refusing_brokers(served) == {}
    assert served.broker(3).requests_of(LeaderAndIsrRequest)[-1].controller_epoch == 1


async def test_a_broker_that_died_is_not_counted_any_longer(served: Cluster) -> None:
    served.broker(3).answer_next_with(ErrorCode.unknown_server_error)
    served.create_topic("more", [1, 2])
    served.broker(3).answer_next_with(ErrorCode.unknown_server_error)
    await served.settle(passing_ms=0)
    assert set(find_refusing_brokers(served)) == {3}
    served.bounce_broker(3)
    await served.settle()
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


async def test_refusals_are_counted_by_request_error_and_meaning(served: Cluster) -> None:
    served.broker(3).offline.add(MORE)
    served.create_topic("more", [3, 2])
    await served.settle()
    labels = {"request": "LeaderAndIsr", "error": "kafka_storage_error", "meaning": "replica_offline"}
    assert served.active.metric("kontroller_broker_refusals_total", **labels) == 1


# Partitions that a broker refuses by themselves

FOR_EVER = [ErrorCode.fenced_leader_epoch, ErrorCode.unknown_leader_epoch, ErrorCode.not_leader_or_follower]


@pytest.mark.parametrize("error", FOR_EVER)
async def test_a_partition_that_is_refused_for_ever_holds_up_no_other_partition_or_broker(
    served: Cluster, error: ErrorCode
) -> None:
    served.broker(3).refused[MORE] = error
    served.create_topic("more", [3])
    served.create_topic("others", [3, 2])
    served.kill_broker(1)
    await served.settle(passing_ms=10 * LONGEST_PAUSE_MS)
    assert served.broker(2).leads(ORDERS)
    assert served.broker(3).leads(OTHERS)
    assert served.broker(3).follows(ORDERS)
    assert served.leadership(MORE) == (3, [3])
    await served.join_isr(ORDERS)
    served.start_broker(4)
    await served.settle(passing_ms=0)
    assert MORE in served.broker(4).metadata.partitions


@pytest.mark.parametrize("error", FOR_EVER)
async def test_a_partition_that_is_refused_for_ever_is_sent_once_in_each_longest_pause(
    served: Cluster, error: ErrorCode
) -> None:
    pauses = 10
    served.broker(3).refused[MORE] = error
    served.create_topic("more", [3])
    await served.settle()
    before = len(served.broker(3).requests)
    of_others = len(served.broker(2).requests_of(LeaderAndIsrRequest))
    await served.settle(passing_ms=pauses * LONGEST_PAUSE_MS)
    assert len(served.broker(3).requests) - before <= 5 * pauses
    assert len(served.broker(2).requests_of(LeaderAndIsrRequest)) == of_others
    assert served.state(MORE).leader_and_isr.leader_epoch <= pauses


@pytest.mark.parametrize("error", FOR_EVER)
async def test_health_metric_and_log_name_the_broker_the_partition_and_the_error(
    served: Cluster, error: ErrorCode
) -> None:
    served.broker(3).refused[MORE] = error
    served.create_topic("more", [3])
    for _ in range(3):
        await served.settle(passing_ms=LONGEST_PAUSE_MS)
        assert find_refusing_brokers(served) == {3: f"LeaderAndIsr: {error.name} of more-0"}
    labels = {"request": "LeaderAndIsr", "error": error.name, "meaning": "tell_person"}
    assert (served.active.metric("kontroller_broker_refusals_total", **labels) or 0) >= 3
    line = next(line for line in served.logs if line["event"] == "broker could not apply a partition's state")
    assert (line["broker"], line["topic"], line["partition"], line["error"]) == (3, "more", 0, error.name)


@pytest.mark.parametrize("error", FOR_EVER)
async def test_a_broker_that_no_longer_refuses_a_partition_leads_it(served: Cluster, error: ErrorCode) -> None:
    served.broker(3).refused[MORE] = error
    served.create_topic("more", [3])
    await served.settle(passing_ms=3 * LONGEST_PAUSE_MS)
    served.broker(3).refused.clear()
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert served.broker(3).leads(MORE)
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


async def test_a_leader_that_keeps_refusing_a_partition_makes_way_and_returns(served: Cluster) -> None:
    served.broker(3).refused[MORE] = ErrorCode.fenced_leader_epoch
    served.create_topic("more", [3, 2])
    await served.settle(passing_ms=2 * LONGEST_PAUSE_MS)
    assert served.leadership(MORE) == (2, [2])
    assert served.broker(2).leads(MORE)
    served.broker(3).refused.clear()
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    await served.replicate()
    assert served.leadership(MORE) == (2, [2, 3])
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


async def test_brokers_that_refuse_a_partition_each_lead_that_of_the_other(served: Cluster) -> None:
    served.broker(3).refused[MORE] = served.broker(2).refused[OTHERS] = ErrorCode.fenced_leader_epoch
    served.create_topic("more", [3, 2])
    served.create_topic("others", [2, 3])
    await served.settle(passing_ms=3 * LONGEST_PAUSE_MS)
    assert served.broker(2).leads(MORE)
    assert served.broker(3).leads(OTHERS)
    assert set(find_refusing_brokers(served)) == {2, 3}


async def test_a_leader_makes_way_to_a_broker_that_cannot_serve_another_partition(served: Cluster) -> None:
    served.broker(3).refused[MORE] = ErrorCode.fenced_leader_epoch
    served.broker(2).unopened.add(OTHERS)
    served.create_topic("others", [2])
    served.create_topic("more", [3, 2])
    await served.settle(passing_ms=3 * LONGEST_PAUSE_MS)
    assert served.broker(2).leads(MORE)


async def test_the_first_refusal_of_a_partition_moves_no_leader_though_another_was_refused_before(
    served: Cluster,
) -> None:
    served.broker(3).refused[MORE] = served.broker(3).refused[OTHERS] = ErrorCode.fenced_leader_epoch
    served.create_topic("more", [3])
    await served.settle(passing_ms=5 * LONGEST_PAUSE_MS)
    served.create_topic("others", [3, 2])
    await served.settle(passing_ms=0)
    assert served.leadership(OTHERS) == (3, [3, 2])
    await served.settle(passing_ms=2 * LONGEST_PAUSE_MS)
    assert served.leadership(OTHERS) == (2, [2])
    assert served.broker(2).leads(OTHERS)


async def test_a_broker_that_refused_an_epoch_and_knows_it_since_is_sent_a_later_one(served: Cluster) -> None:
    """It answers the same epoch as if it had obeyed (STALE_CONTROLLER_EPOCH)."""
    served.broker(3).refused[MORE] = ErrorCode.not_leader_or_follower
    served.create_topic("more", [2, 3])
    await served.settle()
    follower = served.broker(3)
    follower.replicas[MORE] = replace(served.broker(2).replicas[MORE], is_stopped=True)
    follower.refused.clear()
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert follower.follows(MORE)
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


@pytest.mark.parametrize("partition", [ORDERS, MORE], ids=["that it follows", "that it leads"])
async def test_an_epoch_without_a_log_is_raised_and_keeps_the_broker_from_nothing(
    served: Cluster, partition: TopicPartition
) -> None:
    """The broker refuses every request that has the partition as a whole, with all others in it."""
    served.create_topic("more", [3, 2])
    await served.replicate()
    served.broker(3).lose_log_in_memory(partition)
    before = served.leadership(MORE)
    served.fail_log_dir(3)  # of no partition: it is sent all of its replicas
    await served.settle(passing_ms=0)
    assert find_refusing_brokers(served) == {3: "LeaderAndIsr: not_leader_or_follower"}
    await served.settle(passing_ms=2 * FIRST_PAUSE_MS)
    assert find_refusing_brokers(served) == {}
    assert served.broker(3).leads(MORE)
    assert served.broker(3).follows(ORDERS)
    assert served.leadership(MORE) == before
    assert_sound(served)


async def test_an_epoch_without_a_log_is_raised_as_soon_if_another_partition_was_refused_for_long(
    served: Cluster,
) -> None:
    served.broker(3).refused[MORE] = ErrorCode.fenced_leader_epoch
    served.create_topic("more", [3])
    await served.settle(passing_ms=70 * LONGEST_PAUSE_MS)
    served.broker(3).lose_log_in_memory(ORDERS)
    await served.settle(passing_ms=2 * LONGEST_PAUSE_MS)
    assert served.broker(3).follows(ORDERS)
    assert find_refusing_brokers(served) == {3: "LeaderAndIsr: fenced_leader_epoch of more-0"}


async def test_an_epoch_without_a_log_is_raised_as_soon_if_whole_requests_were_refused_for_another_reason(
    served: Cluster,
) -> None:
    served.broker(3).refuse_from_now_on(ErrorCode.unknown_server_error, LeaderAndIsrRequest)
    served.create_topic("more", [1, 2, 3])
    await served.settle(passing_ms=18 * FIRST_PAUSE_MS)  # it refuses after 0, 1, 3, 7 and 15 s
    served.broker(3).obey()
    served.broker(3).lose_log_in_memory(ORDERS)
    await served.settle(passing_ms=50 * FIRST_PAUSE_MS)  # it refuses after 31 s, and is sent a later epoch after 63 s
    assert find_refusing_brokers(served) == {}
    assert served.broker(3).follows(ORDERS)
    assert_sound(served)


async def test_the_epochs_of_a_broker_that_refuses_all_of_them_are_raised_ever_more_seldom(served: Cluster) -> None:
    served.broker(3).refuse_from_now_on(ErrorCode.not_leader_or_follower, LeaderAndIsrRequest)
    served.create_topic("more", [1, 2, 3])
    await served.settle(passing_ms=60 * LONGEST_PAUSE_MS)
    assert served.state(MORE).leader_and_isr.leader_epoch <= 10
    assert find_refusing_brokers(served) == {3: "LeaderAndIsr: not_leader_or_follower"}
    served.broker(3).obey()
    await served.settle(passing_ms=2 * LONGEST_PAUSE_MS)
    assert served.broker(3).follows(MORE)
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


# Leader epochs that ZooKeeper no longer has


async def set_epoch_back(cluster: Cluster, *, partition_epochs: int = 0) -> None:
    """Let brokers know leader epoch 50, while ZooKeeper and the controller have the first one.

    `partition_epochs`: how much larger than in ZooKeeper the partition epoch is.
    """
    for broker in cluster.brokers.values():
        replica = broker.replicas[ORDERS]
        epoch = PartitionEpoch(replica.partition_epoch + partition_epochs)
        broker.replicas[ORDERS] = replace(replica, leader_epoch=LeaderEpoch(50), partition_epoch=epoch)


async def test_a_leader_with_a_later_epoch_than_zookeeper_changes_no_isr_until_the_epoch_is_raised(
    served: Cluster,
) -> None:
    await set_epoch_back(served)
    before = served.state(ORDERS)
    for _ in range(20):
        assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.not_controller
    assert served.state(ORDERS) == before
    assert find_refusing_brokers(served) == {1: "AlterPartition: later epochs of orders-0"}
    labels = {"request": "AlterPartition", "error": "not_controller", "meaning": "tell_person"}
    assert served.active.metric("kontroller_broker_refusals_total", **labels) == 1
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert served.state(ORDERS).leader_and_isr == replace(before.leader_and_isr, leader_epoch=LeaderEpoch(51))
    assert find_refusing_brokers(served) == {}
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.none
    assert served.active.terms == 1
    assert_sound(served)


@pytest.mark.parametrize("behind", [1, 100, 2500])
async def test_a_partition_epoch_that_was_set_back_is_raised_too(served: Cluster, behind: int) -> None:
    """Brokers ignore a later leader epoch with an earlier partition epoch than their own, and report no error."""
    await set_epoch_back(served, partition_epochs=behind)
    before = served.state(ORDERS)
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.not_controller
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert served.state(ORDERS).leader_and_isr == replace(before.leader_and_isr, leader_epoch=LeaderEpoch(51))
    assert find_refusing_brokers(served) == {}
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.none
    assert served.active.terms == 1
    assert_sound(served)


async def test_a_partition_epoch_alone_that_was_set_back_is_raised(served: Cluster) -> None:
    leader = served.broker(1)
    leader.replicas[ORDERS] = replace(leader.replicas[ORDERS], partition_epoch=PartitionEpoch(100))
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.not_controller
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.none
    assert_sound(served)


async def test_a_partition_epoch_that_is_too_far_behind_is_reported_again_and_again(served: Cluster) -> None:
    await set_epoch_back(served, partition_epochs=(1 << 31) - 100)
    before = served.state(ORDERS)
    for _ in range(3):
        assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.not_controller
        assert find_refusing_brokers(served) == {1: "AlterPartition: later epochs of orders-0"}
        await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert served.state(ORDERS) == before
    assert len([line for line in served.logs if line["event"] == "broker has later epochs than ZooKeeper"]) == 3


async def test_many_partition_epochs_that_were_set_back_are_raised_some_at_a_time(
    served: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_states, "_MOST_REWRITES", 150)
    served.create_topic("more", [1, 2, 3])
    await served.settle()
    leader = served.broker(1)
    for partition in (ORDERS, MORE):
        leader.replicas[partition] = replace(leader.replicas[partition], partition_epoch=PartitionEpoch(100))

    async def change_isrs() -> list[ErrorCode | None]:
        return [await served.alter_isr(partition, [1, 2]) for partition in (ORDERS, MORE)]

    assert await change_isrs() == [ErrorCode.not_controller, ErrorCode.not_controller]
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert await change_isrs() == [ErrorCode.none, ErrorCode.not_controller]
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert await change_isrs() == [ErrorCode.none, ErrorCode.none]
    assert_sound(served)


async def test_a_state_that_somebody_writes_while_its_partition_epoch_is_raised_is_read_again(served: Cluster) -> None:
    await set_epoch_back(served, partition_epochs=100)
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.not_controller
    state = paths.partition_state(ORDERS)

    def write_between(ops: Sequence[WriteOp]) -> None:
        if any(op.path == state for op in ops):
            served.zk.interventions.clear()
            served.put(state, served.data(state) or b"")

    served.zk.interventions.append(write_between)
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.not_controller
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.none
    assert_sound(served)


@pytest.mark.parametrize("partition_epochs", [0, 100])
async def test_a_deposed_controller_raises_no_leader_epoch(served: Cluster, partition_epochs: int) -> None:
    """Its successor has given the leader the later epoch."""
    await set_epoch_back(served, partition_epochs=partition_epochs)
    before = served.state(ORDERS)

    def depose(ops: Sequence[WriteOp]) -> None:
        served.zk.interventions.clear()
        served.write(Delete(path=paths.CONTROLLER))
        served.make_kafka_controller(3)

    served.zk.interventions.append(depose)
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.not_controller
    await served.settle(passing_ms=LONGEST_PAUSE_MS)
    assert served.active.terms == 2
    assert served.state(ORDERS) == before


@pytest.mark.parametrize("epoch", [(1 << 31) - (1 << 24), (1 << 31) - 1])
async def test_no_leader_epoch_is_raised_until_there_is_no_later_one(served: Cluster, epoch: int) -> None:
    leader = served.broker(1)
    leader.replicas[ORDERS] = replace(leader.replicas[ORDERS], leader_epoch=LeaderEpoch(epoch))
    before = served.state(ORDERS)
    assert await served.alter_isr(ORDERS, [1, 2]) is ErrorCode.not_controller
    await served.settle(passing_ms=2 * LONGEST_PAUSE_MS)
    assert served.state(ORDERS) == before


async def test_a_broker_without_a_replica_raises_no_leader_epoch(served: Cluster) -> None:
    served.start_broker(4)
    await served.settle()
    served.broker(4).replicas[ORDERS] = replace(
        served.broker(1).replicas[ORDERS], leader=BrokerId(4), leader_epoch=LeaderEpoch(50)
    )
    before = served.state(ORDERS)
    assert await served.alter_isr(ORDERS, [4]) is ErrorCode.not_controller
    await served.settle(passing_ms=2 * LONGEST_PAUSE_MS)
    assert served.state(ORDERS) == before


# Controller epochs that left no trace in ZooKeeper


def make_brokers_know(cluster: Cluster, epoch: int) -> None:
    for broker in cluster.brokers.values():
        broker.controller_epoch = ControllerEpoch(epoch)


@pytest.mark.parametrize("known", [2, 40, 5000])
async def test_the_epoch_rises_until_brokers_take_it_and_all_is_sent_again(served: Cluster, known: int) -> None:
    make_brokers_know(served, known)
    served.kill_broker(1)
    await served.settle()
    assert served.broker(2).leads(ORDERS)
    assert known <= served.active.term.identity.epoch
    assert (
        codecs.decode_controller_epoch(served.data(paths.CONTROLLER_EPOCH) or b"") == served.active.term.identity.epoch
    )
    assert served.active.terms == 1
    assert find_refusing_brokers(served) == {}
    assert_sound(served)


async def test_a_new_controller_after_a_restored_backup_is_obeyed_by_all(served: Cluster) -> None:
    await served.active.kill()
    make_brokers_know(served, 300)
    served.put(paths.CONTROLLER_EPOCH, b"3")
    process = await served.serve(1001)
    served.create_topic("more", [1, 2])
    await served.settle()
    assert served.broker(1).leads(MORE)
    assert process.terms == 1
    assert_sound(served)


async def test_a_deposed_controller_that_is_refused_raises_nothing(served: Cluster) -> None:
    """The brokers refuse it because another controller is in office, which it does not know yet."""
    before = served.active.term.identity.epoch

    def depose(ops: Sequence[WriteOp]) -> None:
        if ops[0].path == paths.CONTROLLER_EPOCH and isinstance(ops[0], SetData):
            served.zk.interventions.clear()
            served.write(Delete(path=paths.CONTROLLER))
            served.make_kafka_controller(3)

    served.zk.interventions.append(depose)
    make_brokers_know(served, before + 1)
    served.create_topic("more", [1, 2])
    await served.settle()
    assert served.active.terms == 2
    assert served.active.term.identity.epoch == before + 2
    assert served.broker(1).leads(MORE)
    assert_sound(served)


async def test_an_epoch_is_not_raised_for_ever(served: Cluster) -> None:
    before = served.active.term.identity.epoch
    make_brokers_know(served, 2**31 - 1)
    served.create_topic("more", [1, 2])
    await served.settle(passing_ms=5 * LONGEST_PAUSE_MS)
    assert served.active.term.identity.epoch == before + sum(STEPS)
    assert set(find_refusing_brokers(served)) == {1, 2, 3}


async def test_the_history_goes_on_under_the_raised_epoch(cluster: Cluster) -> None:
    journal = cluster.journal = MemoryJournal()
    cluster.start_brokers(1, 2)
    process = await cluster.serve()
    make_brokers_know(cluster, 40)
    cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    assert_journal_folds_to(process.term.state, journal)
