"""The invariants of every partition, for any assigned, in-sync and live replicas that Hypothesis draws."""

from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import NO_LEADER, BrokerId, PartitionId
from controller_core.model.leader_selectors import (
    NoLeader,
    Selection,
    elect_controlled_shutdown_leader,
    elect_initial_leader,
    elect_offline_partition_leader,
    elect_preferred_replica_leader,
    elect_reassigned_partition_leader,
    remove_replicas,
)
from controller_core.model.metadata import ReplicaAssignment
from controller_core.model.reassignment import begin_reassignment, complete_reassignment, find_dropped_replicas
from controller_core.model.topics.placement_repair import replace_phantom
from tests.unit.model.strategies import BROKERS, Partition, partitions, replica_lists

PHANTOM = BrokerId(1000)


def all_selections(partition: Partition, *, unclean_allowed: bool) -> list[Selection | NoLeader]:
    assigned, current, live = partition.assigned, partition.current, partition.live
    return [
        elect_offline_partition_leader(assigned, current, live, unclean_allowed=unclean_allowed),
        elect_reassigned_partition_leader(assigned, current, live),
        elect_preferred_replica_leader(assigned, current, live),
        elect_controlled_shutdown_leader(assigned, current, frozenset(BROKERS), frozenset(BROKERS) - live),
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
    careful = elect_offline_partition_leader(
        partition.assigned, partition.current, partition.live, unclean_allowed=False
    )
    bold = elect_offline_partition_leader(partition.assigned, partition.current, partition.live, unclean_allowed=True)
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
    after = remove_replicas(current, leaving)
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
    selection = elect_initial_leader(assigned, live)
    expected = [replica for replica in assigned if replica in live]
    if isinstance(selection, NoLeader):
        assert expected == []
    else:
        assert selection.leader_and_isr.leader == expected[0]
        assert list(selection.leader_and_isr.isr) == list(selection.receivers) == expected


@given(replica_lists(), replica_lists())
def test_origin_and_target_can_be_read_from_the_assignment_while_it_runs(
    origin: tuple[BrokerId, ...], target: tuple[BrokerId, ...]
) -> None:
    running = begin_reassignment(ReplicaAssignment(replicas=origin), target)
    assert running.target == target
    assert set(running.origin) == set(origin)
    assert set(running.replicas) == set(origin) | set(target)
    assert len(set(running.replicas)) == len(running.replicas)
    assert running.is_being_reassigned == (set(origin) != set(target))
    assert complete_reassignment(running) == ReplicaAssignment(replicas=target)


@given(replica_lists(), replica_lists(), replica_lists())
def test_replacing_a_target_is_as_if_the_former_had_never_been_but_for_what_it_drops(
    origin: tuple[BrokerId, ...], first: tuple[BrokerId, ...], second: tuple[BrokerId, ...]
) -> None:
    begun = ReplicaAssignment(replicas=origin)
    running = begin_reassignment(begun, first)
    replaced, direct = begin_reassignment(running, second), begin_reassignment(begun, second)
    assert replaced.target == direct.target
    assert set(replaced.adding) == set(direct.adding)
    assert set(replaced.removing) == set(direct.removing)
    assert set(find_dropped_replicas(running, replaced)) == set(first) - set(origin) - set(second)


@given(
    st.dictionaries(
        st.integers(0, 5).map(PartitionId),
        replica_lists().flatmap(lambda replicas: st.permutations((*replicas, PHANTOM)) | st.just(replicas).map(list)),
        min_size=1,
    ),
    st.frozensets(st.sampled_from(BROKERS)),
)
def test_a_repaired_assignment_keeps_the_others_in_their_places_and_names_nobody_twice(
    replicas: dict[PartitionId, list[BrokerId]], live: frozenset[BrokerId]
) -> None:
    partitions = {partition: ReplicaAssignment(replicas=tuple(brokers)) for partition, brokers in replicas.items()}
    for partition, repaired in replace_phantom(partitions, PHANTOM, live, {}).items():
        before = partitions[partition].replicas
        assert PHANTOM not in repaired.replicas
        assert len(set(repaired.replicas)) == len(repaired.replicas)
        assert [b for b in repaired.replicas if b in before] == [b for b in before if b != PHANTOM]
        assert set(repaired.replicas) - set(before) <= live
