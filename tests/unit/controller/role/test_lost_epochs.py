"""`/controller_epoch` is deleted, or lowered by a restored backup: brokers know later epochs and must obey all the same."""

from collections.abc import Callable

import pytest

from controller_core.model.ids import ControllerEpoch, TopicName
from controller_core.zk import codecs, paths
from simulation.checks import assert_sound
from simulation.cluster import Cluster, tp
from tests.unit.journal.memory import MemoryJournal, assert_journal_folds_to

ORDERS = tp("orders")


def epoch_in_zookeeper(cluster: Cluster) -> int:
    return codecs.decode_controller_epoch(cluster.data(paths.CONTROLLER_EPOCH) or b"")


def delete_epoch(cluster: Cluster) -> None:
    cluster.remove(paths.CONTROLLER_EPOCH)


def lower_epoch(cluster: Cluster) -> None:
    cluster.put(paths.CONTROLLER_EPOCH, b"1")


LOSE_EPOCH = pytest.mark.parametrize("lose_epoch", [delete_epoch, lower_epoch])


@pytest.fixture
async def fifth_term(cluster: Cluster) -> Cluster:
    """Three brokers, `orders` on all of them, led by 1; the fifth controller of the cluster is in office."""
    cluster.start_brokers(1, 2, 3)
    for number in range(1000, 1005):
        if cluster.processes:
            await cluster.active.kill()
        await cluster.serve(number)
    cluster.create_topic("orders", [1, 2, 3])
    await cluster.settle()
    return cluster


@LOSE_EPOCH
async def test_a_controller_in_office_that_finds_the_epoch_lost_goes_on_above_its_own(
    fifth_term: Cluster, lose_epoch: Callable[[Cluster], None]
) -> None:
    before = fifth_term.active.term.identity.epoch
    lose_epoch(fifth_term)
    fifth_term.kill_broker(1)
    await fifth_term.settle()
    assert epoch_in_zookeeper(fifth_term) == before + 1
    assert fifth_term.leadership(ORDERS) == (2, [2, 3])
    assert fifth_term.broker(2).leads(ORDERS)
    assert_sound(fifth_term)


@LOSE_EPOCH
async def test_a_new_controller_begins_above_the_epochs_of_all_partition_states(
    fifth_term: Cluster, lose_epoch: Callable[[Cluster], None]
) -> None:
    await fifth_term.active.kill()
    written_under = fifth_term.state(ORDERS).controller_epoch
    lose_epoch(fifth_term)
    for broker in fifth_term.brokers.values():
        broker.requests.clear()
    await fifth_term.serve(1010)
    sent = {request.controller_epoch for broker in fifth_term.brokers.values() for request in broker.requests}
    assert sent == {written_under + 1} == {epoch_in_zookeeper(fifth_term)}
    assert_sound(fifth_term)


async def test_the_history_of_a_term_whose_epoch_rose_at_its_begin_comes_to_the_state(cluster: Cluster) -> None:
    journal = cluster.journal = MemoryJournal()
    cluster.start_brokers(1, 2)
    await cluster.serve()
    cluster.create_topic("orders", [1, 2])
    await cluster.settle()
    await cluster.active.kill()
    delete_epoch(cluster)
    process = await cluster.serve(1001)
    assert_journal_folds_to(process.term.state, journal)


async def test_a_state_with_an_epoch_that_no_controller_had_does_not_use_up_the_epochs(fifth_term: Cluster) -> None:
    await fifth_term.active.kill()
    before = epoch_in_zookeeper(fifth_term)
    state = fifth_term.state(ORDERS).leader_and_isr
    fifth_term.put(paths.partition_state(ORDERS), codecs.encode_partition_state(state, ControllerEpoch(2**31 - 1)))
    await fifth_term.serve(1010)
    assert epoch_in_zookeeper(fifth_term) == before + 1
    assert TopicName("orders") in fifth_term.active.term.state.topics
