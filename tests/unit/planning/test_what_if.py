"""Questions of what would happen."""

import numpy as np
import pytest

from kontroller.planning.what_if import UnclearQuestionError, suppose
from simulation.cluster.names import tp
from tests.unit.planning.snapshots import GIB, make_partition, make_snapshot

TWO = {tp("orders", 0): make_partition(1, 2), tp("orders", 1): make_partition(3, 1), tp("orders", 2): make_partition(3)}


def test_a_lost_broker_leads_nothing_and_is_in_no_isr() -> None:
    found = suppose("lose broker 3", make_snapshot(TWO))
    partitions, ids = found.snapshot.partitions, found.snapshot.brokers.ids
    assert [int(ids[at]) if at >= 0 else None for at in partitions.leader] == [1, 1, None]
    assert partitions.in_sync.tolist() == [[True, True], [False, True], [False, False]]
    assert found.snapshot.brokers.is_live.tolist() == [True, True, False, True]
    assert found.lost == (3,)
    assert found.lines == (
        "lost: broker 3",
        "offline, because no replica in sync is left: 1 partition (orders-2)",
        "below min.insync.replicas, so producers with acks=all fail: 1 partition (orders-1)",
        "leaders on other brokers: 1 partition",
    )


def test_a_lost_rack_takes_all_of_its_brokers() -> None:
    found = suppose("lose  rack a", make_snapshot())
    assert found.lost == (1, 4)
    assert found.lines[1].startswith("offline, because no replica in sync is left: 0 partitions")
    assert found.lines[3] == "leaders on other brokers: 6 partitions"


def test_several_brokers_are_lost_at_once() -> None:
    assert suppose("lose brokers 1, 2", make_snapshot()).lost == (1, 2)


def test_added_brokers_go_to_the_smallest_racks_and_have_the_usual_disks() -> None:
    found = suppose("add 3 brokers", make_snapshot())
    brokers = found.snapshot.brokers
    assert (found.added, brokers.racks[4:]) == ((5, 6, 7), ("b", "c", "a"))
    assert brokers.capacity_disk_bytes[4:].tolist() == [100 * GIB] * 3
    assert np.isnan(brokers.capacity_in_bytes_per_second).all()
    assert found.lines == ("added: 5 (rack b), 6 (rack c), 7 (rack a)",)


def test_brokers_are_added_to_a_cluster_without_racks() -> None:
    found = suppose("add 1 broker", make_snapshot(TWO, {1: None, 2: None, 3: None}))
    assert found.snapshot.brokers.racks == (None,) * 4


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("lose rack x", "no broker is in rack x; the racks are: a, b, c"),
        ("lose broker 9", "the cluster has no broker 9"),
        ("lose everything", 'is not understood: ask "lose rack b", "lose broker 3"'),
        ("", "is not understood"),
        ("add 0 brokers", "0 brokers cannot be added"),
        ("add 99999 brokers", "99999 brokers cannot be added"),
        ("add -1 brokers", "is not understood"),
    ],
)
def test_a_question_that_is_not_clear_is_refused(question: str, why: str) -> None:
    with pytest.raises(UnclearQuestionError, match=why):
        suppose(question, make_snapshot())
