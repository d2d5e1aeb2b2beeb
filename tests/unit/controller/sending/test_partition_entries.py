"""Entries of partitions are encoded to bytes directly, and equal what kio writes.

The reference is an object for each entry, made from the state and written by kio.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.controller.sending import broker_requests
from controller_core.controller.sending.broker_requests import ControllerIdentity
from controller_core.controller.sending.prepared_topic import TopicWriter
from controller_core.controller.sending.request_batch import RequestBatch
from controller_core.controller.state.cluster_state import ClusterState
from controller_core.model.ids import (
    EPOCH_DURING_DELETE,
    LEADER_DURING_DELETE,
    NO_EPOCH,
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.listeners import ControllerListeners
from controller_core.model.metadata import (
    Broker,
    Endpoint,
    LeaderAndIsr,
    LeaderRecoveryState,
    PartitionState,
    ReplicaAssignment,
)
from controller_core.wire.codecs.encoding import encode_control_request
from controller_core.wire.codecs.entries import find_deleted
from controller_core.wire.codecs.frames import encode_request
from controller_core.wire.messages import (
    ControlRequest,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

ENDPOINT = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="controller", port=9000)
IDENTITY = ControllerIdentity(
    id=BrokerId(1000), epoch=ControllerEpoch(7), listeners=ControllerListeners(endpoints=(ENDPOINT,))
)
BROKERS = [BrokerId(number) for number in range(1, 6)]
TOPICS = [TopicName("a"), TopicName("b"), TopicName("ü" * 100)]


@dataclass
class Sent:
    """Collects the requests that a batch sends."""

    requests: list[tuple[BrokerId, ControlRequest]]

    def send(self, broker: BrokerId, request: ControlRequest) -> None:
        self.requests.append((broker, request))


def reference_leader_and_isr(
    state: ClusterState, partitions: Mapping[TopicPartition, bool]
) -> tuple[LeaderAndIsrTopicState, ...]:
    by_topic: defaultdict[TopicName, list[LeaderAndIsrPartitionState]] = defaultdict(list)
    for partition, is_new in partitions.items():
        if partition not in state.states or not state.has(partition):
            continue
        known, assignment = state.states[partition], state.assignment(partition)
        by_topic[partition.topic].append(
            LeaderAndIsrPartitionState(
                partition_index=partition.partition,
                controller_epoch=known.controller_epoch,
                leader=known.leader_and_isr.leader,
                leader_epoch=known.leader_and_isr.leader_epoch,
                isr=known.leader_and_isr.isr,
                partition_epoch=known.partition_epoch,
                replicas=assignment.replicas,
                adding_replicas=assignment.adding,
                removing_replicas=assignment.removing,
                is_new=is_new,
                leader_recovery_state=int(known.leader_and_isr.leader_recovery_state),
            )
        )
    return tuple(
        LeaderAndIsrTopicState(topic_name=name, topic_id=state.topics[name].topic_id, partition_states=tuple(entries))
        for name, entries in by_topic.items()
    )


def reference_metadata(
    state: ClusterState, partitions: Iterable[TopicPartition], deleted: Mapping[TopicPartition, TopicId | None]
) -> tuple[UpdateMetadataTopicState, ...]:
    by_topic: defaultdict[tuple[TopicName, TopicId | None], list[UpdateMetadataPartitionState]] = defaultdict(list)
    present: dict[TopicName, TopicId | None] = {}
    for partition in partitions:
        deletion = state.deletions.get(partition.topic)
        if partition in deleted or (deletion is not None and deletion.started):
            continue
        if partition in state.states and state.has(partition):
            present[partition.topic] = state.topics[partition.topic].topic_id
            by_topic[partition.topic, present[partition.topic]].append(reference_entry(state, partition))
    for partition in partitions:
        if partition in deleted:
            topic_id = present.get(partition.topic, deleted[partition])
            by_topic[partition.topic, topic_id].append(reference_deleted(partition))
    return tuple(
        UpdateMetadataTopicState(topic_name=name, topic_id=topic_id, partition_states=tuple(entries))
        for (name, topic_id), entries in by_topic.items()
    )


def assert_what_is_forgotten_comes_last(request: ControlRequest) -> None:
    if isinstance(request, UpdateMetadataRequest):
        for topic in request.topic_states:
            forgotten = [partition.leader == LEADER_DURING_DELETE for partition in topic.partition_states]
            assert forgotten == sorted(forgotten)


def reference_entry(state: ClusterState, partition: TopicPartition) -> UpdateMetadataPartitionState:
    known, replicas = state.states[partition], state.assignment(partition).replicas
    return UpdateMetadataPartitionState(
        partition_index=partition.partition,
        controller_epoch=known.controller_epoch,
        leader=known.leader_and_isr.leader,
        leader_epoch=known.leader_and_isr.leader_epoch,
        isr=known.leader_and_isr.isr,
        zk_version=known.partition_epoch,
        replicas=replicas,
        offline_replicas=tuple(r for r in replicas if not state.is_served_by(partition, r)),
    )


def reference_deleted(partition: TopicPartition) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=partition.partition,
        controller_epoch=ControllerEpoch(-1),
        leader=LEADER_DURING_DELETE,
        leader_epoch=LeaderEpoch(0),
        isr=(),
        zk_version=PartitionEpoch(0),
        replicas=(),
    )


def reference_stops(
    state: ClusterState, stops: Mapping[TopicPartition, bool], strays: Container[TopicPartition]
) -> tuple[StopReplicaTopicState, ...]:
    by_topic: defaultdict[TopicName, list[StopReplicaPartitionState]] = defaultdict(list)
    for partition, delete in stops.items():
        known = state.states.get(partition)
        leader_epoch = known.leader_and_isr.leader_epoch if known else NO_EPOCH
        if partition.topic in state.deletions:
            leader_epoch = EPOCH_DURING_DELETE
        by_topic[partition.topic].append(
            StopReplicaPartitionState(
                partition_index=partition.partition,
                leader_epoch=NO_EPOCH if partition in strays else leader_epoch,
                delete_partition=delete,
            )
        )
    return tuple(
        StopReplicaTopicState(topic_name=name, partition_states=tuple(stops)) for name, stops in by_topic.items()
    )


some_brokers = st.lists(st.sampled_from(BROKERS), max_size=4, unique=True).map(tuple)
epochs = st.integers(-(2**31), 2**31 - 1)
assignments = st.builds(
    ReplicaAssignment,
    replicas=some_brokers | st.just(tuple(BrokerId(number) for number in range(130))),
    adding=some_brokers,
    removing=some_brokers,
)
partition_states = st.builds(
    PartitionState,
    leader_and_isr=st.builds(
        LeaderAndIsr,
        leader=st.sampled_from([BrokerId(-1), *BROKERS]),
        isr=some_brokers,
        leader_epoch=epochs.map(LeaderEpoch),
        leader_recovery_state=st.sampled_from(LeaderRecoveryState),
    ),
    controller_epoch=epochs.map(ControllerEpoch),
    partition_epoch=epochs.map(PartitionEpoch),
)
partitions = st.builds(TopicPartition, st.sampled_from(TOPICS), st.integers(0, 3).map(PartitionId))


@st.composite
def clusters(draw: st.DrawFn, *, has_exceptions: bool = True) -> ClusterState:
    """`has_exceptions`: perhaps topics are being deleted, and log directories have failed."""
    state = ClusterState()
    for broker in draw(st.lists(st.sampled_from(BROKERS), min_size=1, unique=True)):
        state.add_broker(Broker(id=broker, epoch=BrokerEpoch(50 + broker), endpoints=(ENDPOINT,)))
    for name in draw(st.lists(st.sampled_from(TOPICS), unique=True)):
        state.add_topic(name, draw(st.none() | st.uuids().filter(lambda found: found.int != 0).map(TopicId)), 1)
        for number in range(draw(st.integers(0, 3))):
            state.set_assignment(TopicPartition(name, PartitionId(number)), draw(assignments))
        if has_exceptions and draw(st.booleans()):
            state.mark_for_deletion(name, ())
            if draw(st.booleans()):
                state.deletions[name].start(())
    state.set_states(draw(st.dictionaries(partitions, partition_states)))
    for broker in state.brokers if has_exceptions else ():
        state.set_failed_replicas(broker, frozenset(draw(st.just([]) | st.lists(partitions, max_size=2))))
    return state


@given(clusters(), st.data())
def test_requests_say_what_the_plain_objects_would_say_byte_for_byte(state: ClusterState, data: st.DataObject) -> None:
    led = data.draw(st.lists(st.tuples(partitions, some_brokers, st.booleans())))
    updates = data.draw(st.lists(st.tuples(st.lists(partitions, max_size=3), st.none() | some_brokers)))
    deleted = data.draw(st.dictionaries(partitions, st.none() | st.just(TopicId(UUID(int=9))), max_size=2))
    batch, sent = RequestBatch(state, IDENTITY), Sent([])
    replicas: defaultdict[BrokerId, dict[TopicPartition, bool]] = defaultdict(dict)
    metadata: defaultdict[BrokerId, dict[TopicPartition, None]] = defaultdict(dict)
    for partition, receivers, is_new in led:
        batch.add_leader_and_isr(partition, receivers, is_new=is_new)
        for broker in receivers:
            replicas[broker][partition] = is_new or replicas[broker].get(partition, False)
        updates.append(([partition], None))
    for some, brokers in updates:
        batch.update_metadata(some, brokers)
        for broker in state.brokers if brokers is None else brokers:
            metadata[broker].update(dict.fromkeys(some))
    for partition, topic_id in deleted.items():
        batch.forget_metadata([partition], topic_id)
        for broker in state.brokers:
            metadata[broker][partition] = None
    batch.flush(sent)

    for broker in state.brokers:
        leader_and_isr = [r for b, r in sent.requests if b == broker and isinstance(r, LeaderAndIsrRequest)]
        expected_topics = reference_leader_and_isr(state, replicas[broker])
        assert [sort_topics(request.topic_states) for request in leader_and_isr] == (
            [sort_topics(expected_topics)] if expected_topics else []
        )
        update_metadata = [r for b, r in sent.requests if b == broker and isinstance(r, UpdateMetadataRequest)]
        assert [sort_topics(request.topic_states) for request in update_metadata] == (
            [sort_topics(reference_metadata(state, metadata[broker], deleted))] if broker in metadata else []
        )
    for broker, request in sent.requests:
        assert_what_is_forgotten_comes_last(request)
        assert request.broker_epoch == 50 + broker
        assert encode_control_request(request, 5, "1000") == encode_request(request, 5, "1000")


@given(clusters(), st.lists(st.tuples(partitions, st.sampled_from(["stop", "delete", "stray"])), max_size=8))
def test_stops_say_what_the_plain_objects_would_say_byte_for_byte(
    state: ClusterState, asked: list[tuple[TopicPartition, str]]
) -> None:
    batch, sent = RequestBatch(state, IDENTITY), Sent([])
    receiver = next(iter(state.brokers))
    stops: dict[TopicPartition, bool] = {}
    strays = {partition for partition, how in asked if how == "stray"}
    for partition, how in asked:
        if how == "stray":
            batch.delete_stray(partition, receiver)
        else:
            batch.stop_replica(partition, receiver, delete=how == "delete")
        stops[partition] = stops.get(partition, False) or how != "stop"
    batch.flush(sent)
    expected = reference_stops(state, stops, strays)
    requests = [request for _, request in sent.requests if isinstance(request, StopReplicaRequest)]
    assert [request.topic_states for request in requests] == ([expected] if asked else [])
    for request in requests:
        assert encode_control_request(request, 5, "1000") == encode_request(request, 5, "1000")
        deleted = {
            TopicPartition(topic.topic_name, stop.partition_index): stop.leader_epoch
            for topic in expected
            for stop in topic.partition_states
            if stop.delete_partition
        }
        assert find_deleted(request) == deleted
        assert find_deleted(replace(request, topic_states=expected)) == deleted


def sort_topics(topics: Iterable[Any]) -> list[Any]:
    """The order of topics and of partitions says nothing."""
    found = [(topic.topic_name, str(topic.topic_id), list(topic.partition_states)) for topic in topics]
    for _, _, entries in found:
        entries.sort(key=lambda entry: entry.partition_index)
    return sorted(found, key=lambda topic: topic[:2])


def state_of(*names: TopicName, partition_epoch: int = 0) -> ClusterState:
    state = ClusterState()
    for broker in BROKERS[:3]:
        state.add_broker(Broker(id=broker, epoch=BrokerEpoch(1), endpoints=(ENDPOINT,)))
    for name in names:
        partition = TopicPartition(name, PartitionId(0))
        state.add_topic(name, TopicId(UUID(int=7)), 1)
        state.set_assignment(partition, ReplicaAssignment(replicas=tuple(BROKERS[:3])))
        written = PartitionState(
            leader_and_isr=LeaderAndIsr(leader=BROKERS[0], isr=tuple(BROKERS[:3])),
            controller_epoch=ControllerEpoch(1),
            partition_epoch=PartitionEpoch(partition_epoch),
        )
        state.set_states({partition: written})
    return state


@given(clusters(has_exceptions=False), st.data())
def test_whole_topics_say_what_the_plain_objects_of_their_partitions_would_say(
    state: ClusterState, data: st.DataObject
) -> None:
    writer = TopicWriter(state, state.live_or_shutting_down)
    whole = {name: topic for name in state.topics if (topic := writer.prepare(name)) is not None}
    more = data.draw(st.lists(partitions))
    batch, sent = RequestBatch(state, IDENTITY), Sent([])
    batch.send_all_of(whole)
    batch.update_metadata(partition for partition in more if partition.topic not in whole)
    batch.flush(sent)

    known = [p for name in whole for p in state.list_partitions_of(name)]
    others = [p for p in dict.fromkeys(more) if p.topic not in whole]
    for broker in state.brokers:
        hosted = {p: False for p in known if broker in state.assignment(p).replicas}
        leader_and_isr = [r for b, r in sent.requests if b == broker and isinstance(r, LeaderAndIsrRequest)]
        assert [sort_topics(request.topic_states) for request in leader_and_isr] == (
            [sort_topics(reference_leader_and_isr(state, hosted))] if hosted else []
        )
        for request in leader_and_isr:
            assert {leader.broker_id for leader in request.live_leaders} >= state.brokers.keys() & {
                state.states[partition].leader_and_isr.leader for partition in hosted
            }
        update_metadata = [r for b, r in sent.requests if b == broker and isinstance(r, UpdateMetadataRequest)]
        assert [sort_topics(request.topic_states) for request in update_metadata] == [
            sort_topics(reference_metadata(state, [*known, *others], {}))
        ]


@pytest.mark.parametrize("changed", ["nothing", "assignment", "state", "brokers", "id"])
def test_what_was_prepared_is_sent_only_while_it_would_be_written_the_same(changed: str) -> None:
    state = state_of(TOPICS[0])
    (partition,) = state.all_partitions()
    prepared = TopicWriter(state, state.live_or_shutting_down).prepare(TOPICS[0])
    assert prepared is not None
    match changed:
        case "assignment":
            state.set_assignment(partition, ReplicaAssignment(replicas=tuple(BROKERS[:2])))
        case "state":
            state.set_states({partition: replace(state.states[partition], partition_epoch=PartitionEpoch(9))})
        case "brokers":
            state.remove_broker(BROKERS[2])
        case "id":
            states, assignments = dict(state.states), dict(state.topics[TOPICS[0]].partitions)
            state.remove_topic(TOPICS[0])
            state.add_topic(TOPICS[0], TopicId(UUID(int=8)), 1, assignments)
            state.set_states(states)
    now = TopicWriter(state, state.live_or_shutting_down)
    assert now.is_of_now(TOPICS[0], prepared) is (changed == "nothing")
    assert (now.prepare(TOPICS[0]) == prepared) is (changed == "nothing")


@pytest.mark.parametrize("former_id", [None, TopicId(UUID(int=9))])
def test_what_a_former_topic_had_is_forgotten_after_what_the_present_one_has_and_under_its_id(
    former_id: TopicId | None,
) -> None:
    state = state_of(TOPICS[0])
    (kept,) = state.all_partitions()
    forgotten = TopicPartition(TOPICS[0], PartitionId(7))
    batch, sent = RequestBatch(state, IDENTITY), Sent([])
    batch.forget_metadata([forgotten], former_id)
    batch.update_metadata([kept])
    batch.flush(sent)
    for _, request in sent.requests:
        assert isinstance(request, UpdateMetadataRequest)
        (topic,) = request.topic_states
        assert topic.topic_id == state.topics[TOPICS[0]].topic_id
        assert [partition.partition_index for partition in topic.partition_states] == [kept.partition, 7]


def test_what_does_not_fit_one_request_is_sent_in_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_requests, "REQUEST_BYTES", 50)
    state = state_of(*TOPICS[:2], *(TopicName(f"topic-{number}") for number in range(5)))
    batch, sent = RequestBatch(state, IDENTITY), Sent([])
    batch.add_leader_and_isr_to(BROKERS[0], list(state.all_partitions()))
    batch.update_metadata(state.all_partitions())
    for partition in state.all_partitions():
        batch.stop_replica(partition, BROKERS[0], delete=False)
    batch.flush(sent)
    to_first = [request for broker, request in sent.requests if broker == BROKERS[0]]
    in_order = [type(request) for request in to_first]
    kinds = [LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest]
    assert in_order == sorted(in_order, key=kinds.index)
    for kind in kinds:
        of_kind = [request for request in to_first if isinstance(request, kind)]
        assert len(of_kind) > 1
        assert sorted(topic.topic_name for request in of_kind for topic in request.topic_states) == sorted(state.topics)


def test_a_partition_with_a_value_that_no_field_can_carry_is_left_out_and_the_others_are_sent() -> None:
    state = state_of(TOPICS[0])
    broken = TopicPartition(TOPICS[1], PartitionId(0))
    other = state_of(TOPICS[1], partition_epoch=2**31)
    state.add_topic(TOPICS[1], TopicId(UUID(int=7)), 1, other.topics[TOPICS[1]].partitions)
    state.set_states({broken: other.states[broken]})
    batch, sent = RequestBatch(state, IDENTITY), Sent([])
    batch.add_leader_and_isr_to(BROKERS[0], list(state.all_partitions()))
    batch.update_metadata(state.all_partitions())
    batch.flush(sent)
    assert len(sent.requests) == 4
    for _, request in sent.requests:
        assert isinstance(request, LeaderAndIsrRequest | UpdateMetadataRequest)
        assert [topic.topic_name for topic in request.topic_states] == [TOPICS[0]]


def test_a_replica_whose_leader_epoch_no_field_can_carry_is_not_stopped_and_the_others_are() -> None:
    state = state_of(*TOPICS[:2])
    broken, sound = state.all_partitions()
    leadership = replace(state.states[broken].leader_and_isr, leader_epoch=LeaderEpoch(2**31))
    state.set_states({broken: replace(state.states[broken], leader_and_isr=leadership)})
    batch, sent = RequestBatch(state, IDENTITY), Sent([])
    for partition in (broken, sound):
        batch.stop_replica(partition, BROKERS[0], delete=False)
    batch.flush(sent)
    ((_, request),) = sent.requests
    assert isinstance(request, StopReplicaRequest)
    assert [topic.topic_name for topic in request.topic_states] == [sound.topic]


def test_brokers_that_are_sent_the_same_share_its_bytes() -> None:
    state = state_of(*TOPICS)
    batch, sent = RequestBatch(state, IDENTITY), Sent([])
    batch.update_metadata(state.all_partitions())
    batch.flush(sent)
    assert len(sent.requests) == 3
    assert len({id(r.topic_states) for _, r in sent.requests if isinstance(r, UpdateMetadataRequest)}) == 1


def test_receivers_of_many_partitions_are_those_that_each_would_have_by_itself() -> None:
    state = state_of(*TOPICS)
    receivers = {partition: BROKERS[: 1 + place] for place, partition in enumerate(state.all_partitions())}
    one_by_one, at_once = Sent([]), Sent([])
    batch = RequestBatch(state, IDENTITY)
    for is_new in (True, False):
        for partition, brokers in receivers.items():
            batch.add_leader_and_isr(partition, brokers, is_new=is_new)
        batch.flush(one_by_one)
        batch.add_leader_and_isr_of(receivers, is_new=is_new)
        batch.flush(at_once)
    assert at_once.requests == one_by_one.requests
