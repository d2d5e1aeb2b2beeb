"""The choices of each of the leader selectors of the specification."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model import leader_selectors as selectors
from controller_core.model.ids import NO_LEADER, BrokerId, LeaderEpoch
from controller_core.model.leader_selectors import NoLeader, Selection
from controller_core.model.metadata import LeaderAndIsr, LeaderRecoveryState, LogEnd

EPOCH = LeaderEpoch(7)


def ids(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(BrokerId(broker) for broker in brokers)


def lead(leader: int, *isr: int) -> LeaderAndIsr:
    return LeaderAndIsr(leader=BrokerId(leader), isr=ids(*isr), leader_epoch=EPOCH)


def read_selection(selection: Selection | NoLeader) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Leader, ISR and receivers of a selection, which must be one, with the next epoch."""
    assert isinstance(selection, Selection), selection
    assert selection.leader_and_isr.leader_epoch == EPOCH + 1
    return selection.leader_and_isr.leader, selection.leader_and_isr.isr, selection.receivers


class TestInitialLeader:
    def test_the_first_live_replica_leads_and_all_live_replicas_are_the_isr(self) -> None:
        selection = selectors.elect_initial_leader(ids(1, 2, 3), set(ids(3, 2)))
        assert isinstance(selection, Selection)
        assert selection.leader_and_isr == LeaderAndIsr(leader=BrokerId(2), isr=ids(2, 3), leader_epoch=LeaderEpoch(0))
        assert selection.receivers == (2, 3)

    def test_without_a_live_replica_there_is_no_leader(self) -> None:
        nobody = selectors.elect_initial_leader(ids(1, 2), set(ids(3)))
        assert nobody == NoLeader(reason="none of the assigned replicas [1, 2] is live")


class TestOfflinePartitionLeader:
    @pytest.mark.parametrize(
        ("isr", "live", "leader", "new_isr"),
        [
            pytest.param(
                (1, 2, 3), (2, 3), 2, (2, 3), id="the first live assigned replica of the ISR, and the live ISR"
            ),
            pytest.param((1, 3), (2, 3), 3, (3,), id="not one outside the ISR while one inside lives"),
            pytest.param((3, 2, 1), (1, 2, 3), 1, (3, 2, 1), id="in the order of AR, the ISR in its own"),
        ],
    )
    def test_a_live_replica_of_the_isr_leads(
        self, isr: Sequence[int], live: Sequence[int], leader: int, new_isr: Sequence[int]
    ) -> None:
        selection = selectors.elect_offline_partition_leader(
            ids(1, 2, 3), lead(1, *isr), set(ids(*live)), unclean_allowed=False
        )
        assert read_selection(selection) == (leader, new_isr, tuple(sorted(live)))

    def test_one_outside_the_isr_leads_alone_and_recovering_where_that_is_allowed(self) -> None:
        selection = selectors.elect_offline_partition_leader(
            ids(1, 2, 3), lead(1, 1), set(ids(2, 3)), unclean_allowed=True
        )
        assert read_selection(selection) == (2, (2,), (2, 3))
        assert isinstance(selection, Selection)
        assert selection.unclean
        assert selection.leader_and_isr.leader_recovery_state is LeaderRecoveryState.RECOVERING

    @pytest.mark.parametrize(
        ("live", "leader"),
        [
            pytest.param((2, 3, 4), 2, id="one from before the reassignment"),
            pytest.param((3, 4), 3, id="one that is added, if there is no other"),
        ],
    )
    def test_an_unclean_leader_is_one_that_a_reassignment_adds_only_if_no_other_is_live(
        self, live: Sequence[int], leader: int
    ) -> None:
        selection = selectors.elect_offline_partition_leader(
            ids(3, 4, 1, 2), lead(1, 1), set(ids(*live)), unclean_allowed=True, adding=ids(3, 4)
        )
        assert read_selection(selection)[:2] == (leader, (leader,))

    @pytest.mark.parametrize(
        ("log_ends", "leader"),
        [
            pytest.param({3: (4, 10), 4: (4, 30), 2: (4, 20)}, 4, id="the longest log"),
            pytest.param({3: (5, 10), 4: (4, 30), 2: (4, 20)}, 3, id="one of a later epoch, however short"),
            pytest.param({3: (4, 20), 4: (4, 20), 2: (4, 20)}, 3, id="the first of equal ones"),
            pytest.param({2: (4, 20), 5: (4, 30)}, 5, id="not one that is added, as long as some end is unknown"),
            pytest.param({3: (4, 30), 4: (4, 30)}, 5, id="the first from before, where of these nothing is known"),
        ],
    )
    def test_an_unclean_leader_is_the_one_with_the_longest_log_where_that_is_known(
        self, log_ends: Mapping[int, tuple[int, int]], leader: int
    ) -> None:
        selection = selectors.elect_offline_partition_leader(
            ids(3, 4, 1, 5, 2),
            lead(1, 1),
            set(ids(2, 3, 4) if len(log_ends) == 3 else ids(2, 3, 4, 5)),
            unclean_allowed=True,
            adding=ids(3, 4),
            log_ends={BrokerId(broker): LogEnd(LeaderEpoch(epoch), end) for broker, (epoch, end) in log_ends.items()},
        )
        assert read_selection(selection)[:2] == (leader, (leader,))

    def test_the_ends_of_logs_change_nothing_where_the_isr_lives(self) -> None:
        ends = {BrokerId(1): LogEnd(LeaderEpoch(4), 99), BrokerId(2): LogEnd(LeaderEpoch(4), 1)}
        selection = selectors.elect_offline_partition_leader(
            ids(1, 2), lead(2, 2), set(ids(1, 2)), unclean_allowed=True, log_ends=ends
        )
        assert read_selection(selection)[:2] == (2, (2,))

    def test_an_election_is_not_unclean_where_the_isr_lives_though_that_were_allowed(self) -> None:
        selection = selectors.elect_offline_partition_leader(
            ids(1, 2), lead(1, 1, 2), set(ids(2)), unclean_allowed=True
        )
        assert isinstance(selection, Selection)
        assert not selection.unclean

    def test_it_says_that_unclean_elections_are_off(self) -> None:
        refusal = selectors.elect_offline_partition_leader(ids(1, 2), lead(1, 1), set(ids(2)), unclean_allowed=False)
        assert isinstance(refusal, NoLeader)
        assert "unclean leader election is off" in refusal.reason

    def test_nothing_helps_where_no_replica_lives(self) -> None:
        refusal = selectors.elect_offline_partition_leader(ids(1, 2), lead(1, 1), set(ids(9)), unclean_allowed=True)
        assert isinstance(refusal, NoLeader)


class TestReassignedPartitionLeader:
    def test_a_live_reassigned_replica_in_sync_leads_and_the_isr_stays(self) -> None:
        current = lead(1, 1, 2, 3, 4, 5, 6)
        selection = selectors.elect_reassigned_partition_leader(ids(4, 5, 6), current, set(ids(1, 2, 3, 5, 6)))
        assert read_selection(selection) == (5, (1, 2, 3, 4, 5, 6), (4, 5, 6))

    def test_none_leads_that_is_not_in_sync(self) -> None:
        refusal = selectors.elect_reassigned_partition_leader(ids(4, 5), lead(1, 1, 2), set(ids(1, 2, 4, 5)))
        assert isinstance(refusal, NoLeader)


class TestPreferredReplicaLeader:
    def test_the_first_assigned_replica_leads_and_the_isr_stays(self) -> None:
        selection = selectors.elect_preferred_replica_leader(ids(1, 2, 3), lead(2, 2, 1), set(ids(1, 2)))
        assert read_selection(selection) == (1, (2, 1), (1, 2, 3))

    @pytest.mark.parametrize(
        ("isr", "live", "reason"),
        [((2, 3), (1, 2, 3), "1 is not in sync"), ((1, 2), (2, 3), "1 is not live")],
    )
    def test_it_is_not_elected_dead_or_out_of_sync(self, isr: Sequence[int], live: Sequence[int], reason: str) -> None:
        refusal = selectors.elect_preferred_replica_leader(ids(1, 2, 3), lead(2, *isr), set(ids(*live)))
        assert isinstance(refusal, NoLeader)
        assert reason in refusal.reason


class TestControlledShutdownLeader:
    def test_one_in_sync_that_stays_leads_without_those_that_go_in_the_isr(self) -> None:
        selection = selectors.elect_controlled_shutdown_leader(
            ids(1, 2, 3), lead(1, 1, 2, 3), set(ids(1, 2, 3)), set(ids(1, 2))
        )
        assert read_selection(selection) == (3, (3,), (1, 2, 3))

    def test_those_that_shut_down_are_sent_it_and_the_dead_are_not(self) -> None:
        selection = selectors.elect_controlled_shutdown_leader(ids(1, 2, 3), lead(1, 1, 2), set(ids(1, 2)), set(ids(1)))
        assert read_selection(selection) == (2, (2,), (1, 2))

    def test_the_last_in_sync_replica_keeps_the_leadership(self) -> None:
        refusal = selectors.elect_controlled_shutdown_leader(ids(1, 2), lead(1, 1), set(ids(1, 2)), set(ids(1)))
        assert isinstance(refusal, NoLeader)


class TestLeavingTheIsr:
    @pytest.mark.parametrize(
        ("leader", "isr", "leaving", "new_leader", "new_isr"),
        [
            pytest.param(1, (1, 2, 3), (3,), 1, (1, 2), id="a follower leaves"),
            pytest.param(1, (1, 2, 3), (1,), -1, (2, 3), id="the leader leaves"),
            pytest.param(4, (1, 2, 3, 4, 5, 6), (1, 2, 3), 4, (4, 5, 6), id="several leave at once"),
            pytest.param(1, (1,), (1,), -1, (1,), id="the last member stays in it, without a leader"),
            pytest.param(1, (1, 2), (1, 2), -1, (1, 2), id="all that have every message stay in it"),
        ],
    )
    def test_it_shrinks(
        self, leader: int, isr: Sequence[int], leaving: Sequence[int], new_leader: int, new_isr: Sequence[int]
    ) -> None:
        shrunk = selectors.remove_replicas(lead(leader, *isr), set(ids(*leaving)))
        assert shrunk is not None
        assert (shrunk.leader, shrunk.isr, shrunk.leader_epoch) == (new_leader, new_isr, EPOCH + 1)

    @pytest.mark.parametrize(("leader", "isr"), [(1, (1, 2)), (-1, (3,))])
    def test_nothing_is_written_where_nothing_changes(self, leader: int, isr: Sequence[int]) -> None:
        assert selectors.remove_replicas(lead(leader, *isr), set(ids(3))) is None


broker_ids = st.integers(min_value=0, max_value=6).map(BrokerId)
some_brokers = st.lists(broker_ids, min_size=1, max_size=5, unique=True).map(tuple)
broker_sets = st.frozensets(broker_ids)


@given(some_brokers, some_brokers, broker_sets, st.booleans())
def test_whoever_is_elected_lives_and_is_in_an_isr_that_is_not_empty(
    assigned: tuple[BrokerId, ...], isr: tuple[BrokerId, ...], live: frozenset[BrokerId], unclean: bool
) -> None:
    current = LeaderAndIsr(leader=isr[0], isr=isr, leader_epoch=EPOCH)
    for selection in (
        selectors.elect_offline_partition_leader(assigned, current, live, unclean_allowed=unclean),
        selectors.elect_reassigned_partition_leader(assigned, current, live),
        selectors.elect_preferred_replica_leader(assigned, current, live),
        selectors.elect_controlled_shutdown_leader(assigned, current, live, frozenset()),
    ):
        if isinstance(selection, Selection):
            after = selection.leader_and_isr
            assert after.leader in live
            assert after.leader in after.isr
            assert after.leader in assigned
            assert after.leader_epoch == EPOCH + 1
            assert selection.unclean == (after.leader not in isr)
            assert unclean or not selection.unclean


@given(some_brokers, broker_sets)
def test_an_isr_never_becomes_empty_and_never_gains_a_member(
    isr: tuple[BrokerId, ...], leaving: frozenset[BrokerId]
) -> None:
    current = LeaderAndIsr(leader=isr[0], isr=isr, leader_epoch=EPOCH)
    shrunk = selectors.remove_replicas(current, leaving) or current
    assert shrunk.isr
    assert set(shrunk.isr) <= set(isr)
    assert shrunk.leader == NO_LEADER or shrunk.leader in shrunk.isr


def test_a_raised_leadership_is_the_same_but_for_its_epoch() -> None:
    recovering = replace(lead(2, 2, 3), leader_recovery_state=LeaderRecoveryState.RECOVERING)
    assert selectors.raise_leader_epoch(recovering) == replace(recovering, leader_epoch=LeaderEpoch(EPOCH + 1))


def test_where_nothing_is_assigned_nobody_is_preferred_and_it_says_so() -> None:
    elected = selectors.elect_preferred_replica_leader((), lead(1, 1), set(ids(1)))
    assert elected == NoLeader(reason="no replica is assigned")
