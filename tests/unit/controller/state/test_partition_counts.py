"""The counts that are kept with each change are those of looking at each partition."""

from collections import Counter, defaultdict
from typing import Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.controller.operations.leader_rebalance import find_owed
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.controller.state.partition_counts import PartitionCounts, PartitionTally
from controller_core.model.ids import BrokerEpoch, BrokerId, PartitionId, TopicPartition
from controller_core.model.metadata import Broker
from tests.unit.controller.sending.test_partition_entries import (
    BROKERS,
    ENDPOINT,
    TOPICS,
    assignments,
    clusters,
    partition_states,
    partitions,
)
from tests.unit.controller.sending.test_shared_parts import CHANGED, cluster_of
from tests.unit.examples import examples


def assert_counted(state: ClusterState) -> None:
    known = list(state.all_partitions())
    led = {p: (state.states[p].leader_and_isr, state.assignment(p)) for p in known if p in state.states}
    assert state.tally.counts(state.live_or_shutting_down) == PartitionCounts(
        total=len(known),
        offline=sum(not state.is_leader_live(partition) for partition in known),
        under_replicated=sum(not set(assigned.origin) <= set(current.isr) for current, assigned in led.values()),
        not_led_by_preferred=sum(current.leader != assigned.preferred for current, assigned in led.values()),
    )
    preferred = Counter(assigned.preferred for _, assigned in led.values() if assigned.preferred is not None)
    assert +state.tally.count_by_preferred() == preferred
    missed: defaultdict[BrokerId, set[TopicPartition]] = defaultdict(set)
    for partition, (current, assigned) in led.items():
        if assigned.preferred is not None and current.leader != assigned.preferred:
            missed[assigned.preferred].add(partition)
    assert state.tally.find_missed() == missed


def change(state: ClusterState, data: st.DataObject) -> None:
    """Change the state by one of its methods, as operations do."""
    brokers, names = st.sampled_from(BROKERS), sorted(state.topics)
    absent = sorted(set(TOPICS) - set(names))
    known = list(state.all_partitions())
    changes = ["set states", "add broker", "remove broker", "fail replicas"]
    changes += ["forget state", "begin removals"] * bool(known) + ["assign", "remove topic"] * bool(names)
    changes += ["add topic"] * bool(absent)
    match data.draw(st.sampled_from(changes)):
        case "set states":
            state.set_states(data.draw(st.dictionaries(partitions, partition_states, max_size=3)))
        case "forget state":
            state.forget_state(data.draw(st.sampled_from(known)))
        case "assign":
            where = TopicPartition(data.draw(st.sampled_from(names)), PartitionId(data.draw(st.integers(0, 3))))
            state.set_assignment(where, data.draw(assignments))
        case "add topic":
            given_ones = st.dictionaries(st.integers(0, 3).map(PartitionId), assignments, max_size=3)
            state.add_topic(data.draw(st.sampled_from(absent)), None, 1, data.draw(given_ones))
        case "remove topic":
            state.remove_topic(data.draw(st.sampled_from(names)))
        case "begin removals":
            state.begin_removals(data.draw(st.lists(st.sampled_from(known), unique=True)))
        case "add broker":
            broker = data.draw(brokers)
            state.add_broker(Broker(id=broker, epoch=BrokerEpoch(50), endpoints=(ENDPOINT,)))
        case "remove broker":
            state.remove_broker(data.draw(brokers))
        case "fail replicas" if state.brokers:
            failed = st.lists(partitions, max_size=3).map(frozenset)
            state.set_failed_replicas(data.draw(st.sampled_from(sorted(state.brokers))), data.draw(failed))


@given(clusters())
def test_the_first_counts_are_those_of_looking_at_each_partition(state: ClusterState) -> None:
    assert_counted(state)


@examples(150)
@given(clusters(), st.data())
def test_counts_that_are_kept_are_those_of_looking_at_each_partition(state: ClusterState, data: st.DataObject) -> None:
    assert_counted(state)
    tally = state.tally
    for _ in range(data.draw(st.integers(1, 8))):
        change(state, data)
        assert_counted(state)
    assert state.tally is tally, "nothing has counted all of them again"


@given(clusters())
def test_what_another_has_read_is_counted_anew(read: ClusterState) -> None:
    fresh = ClusterState()
    assert_counted(fresh)
    fresh.take_over(read)
    assert_counted(fresh)


def test_counts_and_the_balance_are_looked_up_and_no_partition_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    state = cluster_of(BROKERS, replicas=3)
    before = state.tally.counts(state.live_or_shutting_down)

    def fail(*_: object) -> Never:
        raise AssertionError("a partition is looked at")

    for asked in ("_alike", "all_partitions", "list_partitions_of", "assignment", "has"):
        monkeypatch.setattr(ClusterState, asked, fail)
    assert state.tally.counts(state.live_or_shutting_down) == before
    assert find_owed(state, 0) == {}


def test_a_term_that_is_not_asked_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Never:
        raise AssertionError("a partition is counted")

    monkeypatch.setattr(PartitionTally, "count_in", fail)
    state = cluster_of(BROKERS, replicas=3)
    state.remove_broker(BROKERS[0])
    state.remove_topic(CHANGED.topic)
