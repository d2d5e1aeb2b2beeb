"""Partitions are counted in one pass, and as if each of them were looked at for each count."""

from hypothesis import given

from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.state.partition_counts import PartitionCounts, partition_counts
from tests.unit.controller.sending.test_partition_entries import clusters


@given(clusters())
def test_counts_are_those_of_looking_at_each_partition(state: ClusterState) -> None:
    partitions = list(state.all_partitions())
    led = {p: (state.states[p].leader_and_isr, state.assignment(p)) for p in partitions if p in state.states}
    assert partition_counts(state) == PartitionCounts(
        total=len(partitions),
        offline=sum(not state.is_leader_live(partition) for partition in partitions),
        under_replicated=sum(not set(assigned.origin) <= set(current.isr) for current, assigned in led.values()),
        not_led_by_preferred=sum(current.leader != assigned.preferred for current, assigned in led.values()),
    )
