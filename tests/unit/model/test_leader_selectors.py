"""Who leads: the four selectors of seed 000, the first election, and leaving the ISR."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import INITIAL_LEADER_EPOCH, NO_LEADER, BrokerId, LeaderEpoch
from controller_core.model.leader_selectors import (
    NoLeader,
    Selection,
    controlled_shutdown_leader,
    initial_leader,
    offline_partition_leader,
    preferred_replica_leader,
    raised,
    reassigned_partition_leader,
    without_replicas,
)
from controller_core.model.metadata import LeaderAndIsr, LeaderRecoveryState
from tests.unit.model.strategies import BROKERS, Partition, partitions, replica_lists


def ids(numbers: Iterable[int]) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(number) for number in numbers)


def state(leader: int, isr: Iterable[int], epoch: int = 7) -> LeaderAndIsr:
    return LeaderAndIsr(leader=BrokerId(leader), isr=ids(isr), leader_epoch=LeaderEpoch(epoch))


def chosen(selection: Selection | NoLeader) -> tuple[int, list[int], list[int]]:
    """Leader, ISR and receivers of a selection that was made."""
    assert isinstance(selection, Selection)
    return selection.leader_and_isr.leader, list(selection.leader_and_isr.isr), list(selection.receivers)


def refusal(selection: Selection | NoLeader) -> str:
    assert isinstance(selection, NoLeader)
    return selection.reason


# The first election


@pytest.mark.parametrize(
    ("assigned", "live", "leader", "isr"),
    [
        ([1, 2, 3], [1, 2, 3], 1, [1, 2, 3]),
        ([3, 1, 2], [1, 2, 3], 3, [3, 1, 2]),
        ([1, 2, 3], [3, 2], 2, [2, 3]),
        ([1], [1, 9], 1, [1]),
    ],
)
def test_the_first_live_replica_leads_a_new_partition_and_all_live_ones_are_in_sync(
    assigned: list[int], live: list[int], leader: int, isr: list[int]
) -> None:
    selection = initial_leader(ids(assigned), set(ids(live)))
    assert chosen(selection) == (leader, isr, isr)
    assert isinstance(selection, Selection)
    assert selection.leader_and_isr.leader_epoch == INITIAL_LEADER_EPOCH


def test_a_new_partition_without_a_live_replica_has_no_leader() -> None:
    assert refusal(initial_leader(ids([1, 2]), set(ids([3])))) == "none of the assigned replicas [1, 2] is live"


# OfflinePartitionLeaderSelector


@pytest.mark.parametrize(
    ("assigned", "isr", "live", "expected"),
    [
        ([1, 2, 3], [1, 2, 3], [2, 3], (2, [2, 3], [2, 3])),
        ([1, 2, 3], [3, 2, 1], [2, 3], (2, [3, 2], [2, 3])),
        ([1, 2, 3], [1, 3], [2, 3], (3, [3], [2, 3])),
        ([2, 1], [1, 2], [1, 2, 3], (2, [1, 2], [2, 1])),
    ],
    ids=["first assigned", "ISR keeps its order", "not in sync, only told", "back again"],
)
def test_a_live_replica_of_the_isr_replaces_a_dead_leader(
    assigned: list[int], isr: list[int], live: list[int], expected: tuple[int, list[int], list[int]]
) -> None:
    for unclean_allowed in (False, True):
        selection = offline_partition_leader(
            ids(assigned), state(1, isr), set(ids(live)), unclean_allowed=unclean_allowed
        )
        assert chosen(selection) == expected
        assert isinstance(selection, Selection)
        assert not selection.unclean
        assert selection.leader_and_isr.leader_recovery_state is LeaderRecoveryState.RECOVERED


def test_an_unclean_leader_is_alone_in_the_isr_and_has_to_recover() -> None:
    selection = offline_partition_leader(ids([1, 2, 3]), state(1, [1]), set(ids([2, 3])), unclean_allowed=True)
    assert chosen(selection) == (2, [2], [2, 3])
    assert isinstance(selection, Selection)
    assert selection.unclean
    assert selection.leader_and_isr.leader_recovery_state is LeaderRecoveryState.RECOVERING


def test_without_leave_no_replica_outside_the_isr_leads() -> None:
    selection = offline_partition_leader(ids([1, 2, 3]), state(1, [1]), set(ids([2, 3])), unclean_allowed=False)
    assert refusal(selection) == "none of the in-sync replicas [1] is live, and unclean leader election is off"


def test_no_live_replica_means_no_leader_even_uncleanly() -> None:
    selection = offline_partition_leader(ids([1, 2]), state(1, [1]), set(ids([3])), unclean_allowed=True)
    assert refusal(selection) == "none of the assigned replicas [1, 2] is live"


def test_a_live_member_of_the_isr_that_is_not_assigned_does_not_lead() -> None:
    selection = offline_partition_leader(ids([1, 2]), state(1, [1, 3]), set(ids([2, 3])), unclean_allowed=False)
    assert "unclean leader election is off" in refusal(selection)


# ReassignedPartitionLeaderSelector


def test_the_first_live_reassigned_replica_in_sync_takes_over_and_the_isr_stays() -> None:
    current = state(1, [1, 2, 3, 4, 5, 6])
    selection = reassigned_partition_leader(ids([4, 5, 6]), current, set(ids([1, 5, 6])))
    assert chosen(selection) == (5, [1, 2, 3, 4, 5, 6], [4, 5, 6])


@pytest.mark.parametrize(("isr", "live"), [([1, 2], [4, 5]), ([1, 4, 5], [1])], ids=["not in sync", "not live"])
def test_a_reassignment_whose_replicas_cannot_lead_moves_no_leader(isr: list[int], live: list[int]) -> None:
    selection = reassigned_partition_leader(ids([4, 5]), state(1, isr), set(ids(live)))
    assert refusal(selection) == "none of the reassigned replicas [4, 5] is live and in sync"


# PreferredReplicaPartitionLeaderSelector


def test_the_preferred_replica_leads_and_the_isr_stays() -> None:
    assert chosen(preferred_replica_leader(ids([3, 1, 2]), state(1, [1, 3]), set(ids([1, 3])))) == (
        3,
        [1, 3],
        [3, 1, 2],
    )


@pytest.mark.parametrize(
    ("isr", "live", "reason"),
    [([1], [1, 3], "not in sync"), ([1, 3], [1], "not live"), ([1], [1], "not live")],
)
def test_a_preferred_replica_that_cannot_lead_is_named_with_its_reason(
    isr: list[int], live: list[int], reason: str
) -> None:
    selection = preferred_replica_leader(ids([3, 1]), state(1, isr), set(ids(live)))
    assert refusal(selection) == f"the preferred replica 3 is {reason}"


# ControlledShutdownLeaderSelector


def test_a_stopping_leader_hands_over_and_leaves_the_isr_and_is_told_as_well() -> None:
    selection = controlled_shutdown_leader(ids([1, 2, 3]), state(1, [3, 1, 2]), set(ids([1, 2, 3])), set(ids([1])))
    assert chosen(selection) == (2, [3, 2], [1, 2, 3])


def test_two_stopping_brokers_leave_the_isr_together() -> None:
    selection = controlled_shutdown_leader(ids([1, 2, 3]), state(1, [1, 2, 3]), set(ids([1, 2, 3])), set(ids([1, 2])))
    assert chosen(selection) == (3, [3], [1, 2, 3])


def test_a_stopping_broker_that_is_alone_in_sync_cannot_hand_over() -> None:
    selection = controlled_shutdown_leader(ids([1, 2]), state(1, [1]), set(ids([1, 2])), set(ids([1])))
    assert refusal(selection) == "no in-sync replica of [1] stays when [1] shut down"


# Leaving the ISR, and being told anew


@pytest.mark.parametrize(
    ("leader", "isr", "leaving", "expected"),
    [
        (1, [3, 1, 2], [2], (1, [3, 1])),
        (1, [1, 2, 3], [1], (NO_LEADER, [2, 3])),
        (1, [1], [1], (NO_LEADER, [1])),
        (1, [1, 2], [1, 2], (NO_LEADER, [1, 2])),
    ],
    ids=["a follower", "the leader", "the last one", "all at once"],
)
def test_a_leaving_replica_leaves_the_isr_unless_nobody_would_be_left(
    leader: int, isr: list[int], leaving: list[int], expected: tuple[int, list[int]]
) -> None:
    after = without_replicas(state(leader, isr), set(ids(leaving)))
    assert after is not None
    assert (after.leader, list(after.isr), after.leader_epoch) == (*expected, 8)


@pytest.mark.parametrize(
    ("leader", "isr", "leaving"), [(1, [1, 2], [3]), (NO_LEADER, [1], [1]), (NO_LEADER, [1, 2], [1, 2])]
)
def test_leaving_changes_nothing_for_who_is_not_in_sync_or_was_left_there_without_a_leader(
    leader: int, isr: list[int], leaving: list[int]
) -> None:
    assert without_replicas(state(leader, isr), set(ids(leaving))) is None


def test_raising_changes_the_leader_epoch_alone() -> None:
    assert raised(state(1, [2, 1], 7)) == state(1, [2, 1], 8)


# Whatever the partition


def all_selections(partition: Partition, *, unclean_allowed: bool) -> list[Selection | NoLeader]:
    assigned, current, live = partition.assigned, partition.current, partition.live
    return [
        offline_partition_leader(assigned, current, live, unclean_allowed=unclean_allowed),
        reassigned_partition_leader(assigned, current, live),
        preferred_replica_leader(assigned, current, live),
        controlled_shutdown_leader(assigned, current, frozenset(BROKERS), frozenset(BROKERS) - live),
    ]


@given(partitions(), st.booleans())
def test_every_selector_raises_the_epoch_by_one_and_leads_from_within_the_isr(
    partition: Partition, unclean_allowed: bool
) -> None:
    for selection in all_selections(partition, unclean_allowed=unclean_allowed):
        if isinstance(selection, NoLeader):
            assert selection.reason
            continue
        after = selection.leader_and_isr
        assert after.leader_epoch == partition.current.leader_epoch + 1
        assert after.leader in partition.live
        assert after.leader in after.isr
        assert set(after.isr) <= set(partition.assigned)
        assert after.leader in selection.receivers
        assert set(selection.receivers) <= set(partition.assigned)
        kept = [member for member in partition.current.isr if member in after.isr]
        assert selection.unclean or list(after.isr) == kept, "an election adds nobody to the ISR, nor shuffles it"


@given(partitions())
def test_only_an_unclean_election_leads_from_outside_the_former_isr_and_only_when_allowed(
    partition: Partition,
) -> None:
    careful = offline_partition_leader(partition.assigned, partition.current, partition.live, unclean_allowed=False)
    bold = offline_partition_leader(partition.assigned, partition.current, partition.live, unclean_allowed=True)
    if isinstance(careful, Selection):
        assert bold == careful
        assert careful.leader_and_isr.leader in partition.current.isr
    else:
        assert not partition.live & set(partition.assigned) & set(partition.current.isr)
        assert isinstance(bold, Selection) == bool(partition.live & set(partition.assigned))
        if isinstance(bold, Selection):
            assert bold.unclean
            assert bold.leader_and_isr.isr == (bold.leader_and_isr.leader,)


@given(partitions(), st.frozensets(st.sampled_from(BROKERS)))
def test_leaving_never_empties_an_isr_and_never_keeps_a_leaving_leader(
    partition: Partition, leaving: frozenset[BrokerId]
) -> None:
    current = partition.current
    after = without_replicas(current, leaving)
    if after is None:
        assert current.leader not in leaving
        assert leaving.isdisjoint(current.isr) or set(current.isr) <= leaving
        return
    assert after.isr
    assert after.leader_epoch == current.leader_epoch + 1
    assert after.leader not in leaving
    assert after.leader in (*after.isr, NO_LEADER)
    assert set(after.isr) <= set(current.isr)
    assert leaving.isdisjoint(after.isr) or after.isr == current.isr


@given(replica_lists(), st.frozensets(st.sampled_from(BROKERS)))
def test_a_first_election_takes_every_live_replica_in_the_order_of_the_assignment(
    assigned: tuple[BrokerId, ...], live: frozenset[BrokerId]
) -> None:
    selection = initial_leader(assigned, live)
    expected = [replica for replica in assigned if replica in live]
    if isinstance(selection, NoLeader):
        assert expected == []
    else:
        assert chosen(selection) == (expected[0], expected, expected)
