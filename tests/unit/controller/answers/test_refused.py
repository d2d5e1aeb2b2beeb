"""Brokers answer without obeying: they are sent everything again, or others lead."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from controller_core.controller.term.controller_epochs import STEPS
from controller_core.controller.term.refusals import LONGEST_PAUSE_MS
from controller_core.model.ids import ControllerEpoch, TopicId
from controller_core.wire.messages import ErrorCode, LeaderAndIsrRequest, UpdateMetadataRequest
from controller_core.zk import codecs, paths
from controller_core.zk.session import Delete, SetData, WriteOp
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to

ORDERS, MORE = tp("orders"), tp("more")


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
