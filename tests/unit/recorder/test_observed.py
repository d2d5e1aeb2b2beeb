"""Applied to the first state, the difference of two looks gives the second one, for any guessed causes."""

from hypothesis import given
from hypothesis import strategies as st

from controller_core.journal.batches import Committed, Context, RecorderStarted, Snapshot, StateCopy, TopicCopy
from controller_core.journal.changes import Kind
from controller_core.journal.fold import Folded, fold
from controller_core.journal.inference import Looks, explain
from controller_core.journal.observed import count_missed_versions, difference
from controller_core.model.features import FinalizedFeatures
from controller_core.model.ids import (
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
from controller_core.model.metadata import Broker, Endpoint, LeaderAndIsr, PartitionState, ReplicaAssignment
from tests.unit.journal.memory import MemoryJournal

CONTEXT = Context(
    cluster_id="c",
    controller_id=BrokerId(1),
    controller_epoch=ControllerEpoch(1),
    event_time_us=0,
    cause="test",
    correlation_id="",
    is_inferred=True,
)
IDS = st.integers(1, 3).map(BrokerId)
SOME_IDS = st.lists(IDS, unique=True, max_size=3).map(tuple)
SMALL = st.integers(0, 2)


def broker(number: BrokerId, epoch: int) -> Broker:
    endpoint = Endpoint(listener="PLAINTEXT", security_protocol="PLAINTEXT", host="h", port=9092)
    return Broker(id=number, epoch=BrokerEpoch(epoch), endpoints=(endpoint,))


def state(leader: int, isr: tuple[BrokerId, ...], leader_epoch: int, partition_epoch: int) -> PartitionState:
    return PartitionState(
        leader_and_isr=LeaderAndIsr(leader=BrokerId(leader), isr=isr, leader_epoch=LeaderEpoch(leader_epoch)),
        controller_epoch=ControllerEpoch(1),
        partition_epoch=PartitionEpoch(partition_epoch),
    )


PARTITIONS = st.dictionaries(
    st.integers(0, 2).map(PartitionId),
    st.builds(ReplicaAssignment, replicas=SOME_IDS, adding=SOME_IDS, removing=SOME_IDS),
    max_size=3,
)
TOPICS = st.dictionaries(
    st.sampled_from(["a", "b", "c"]).map(TopicName),
    st.builds(
        TopicCopy,
        topic_id=st.none() | st.uuids(version=4).map(TopicId),
        czxid=SMALL,
        partitions=PARTITIONS,
    ),
)
CONFIGS = st.dictionaries(st.sampled_from(["x", "y"]), st.sampled_from(["1", "2"]), min_size=1)


@st.composite
def copies(draw: st.DrawFn) -> StateCopy:
    topics = draw(TOPICS)
    partitions = [TopicPartition(name, number) for name, topic in topics.items() for number in topic.partitions]
    states = st.builds(state, st.integers(-1, 3), SOME_IDS, SMALL, SMALL)
    return StateCopy(
        brokers={number: broker(number, epoch) for number, epoch in draw(st.dictionaries(IDS, SMALL)).items()},
        topics=topics,
        states={key: draw(states) for key in partitions if draw(st.booleans())},
        features=draw(st.none() | st.builds(FinalizedFeatures, features=st.just({"f": 1}), epoch=SMALL)),
        topic_configs={name: draw(CONFIGS) for name in topics if draw(st.booleans())},
        broker_configs=draw(st.dictionaries(st.none() | IDS, CONFIGS)),
    )


def record_and_fold(before: StateCopy, after: StateCopy) -> Folded:
    journal = MemoryJournal()
    journal.append(RecorderStarted(context=CONTEXT))
    journal.append(Snapshot(context=CONTEXT, state=before))
    for _, changes in explain(difference(before, after), Looks(before=before, after=after)):
        journal.append(Committed(context=CONTEXT, changes=changes))
    journal.append(Snapshot(context=CONTEXT, state=after))
    return fold(journal.entries())


@given(copies(), copies())
def test_the_changes_between_two_states_come_to_the_second_one(before: StateCopy, after: StateCopy) -> None:
    folded = record_and_fold(before, after)
    assert folded.findings == []
    assert folded.proven == 1


@given(copies(), copies())
def test_every_change_has_one_cause_and_nothing_is_recorded_of_what_is_the_same(
    before: StateCopy, after: StateCopy
) -> None:
    changes = difference(before, after)
    explained = [change for _, recorded in explain(changes, Looks(before=before, after=after)) for change in recorded]
    assert sorted(map(repr, explained)) == sorted(map(repr, changes))
    assert all(change.before != change.after for change in changes)
    assert difference(after, after) == []


def test_a_topic_that_was_deleted_and_created_again_is_both() -> None:
    key = TopicPartition(TopicName("a"), PartitionId(0))
    partitions = {PartitionId(0): ReplicaAssignment(replicas=(BrokerId(1),))}
    same = {key: state(1, (BrokerId(1),), 0, 0)}
    before, after = (
        StateCopy(topics={TopicName("a"): TopicCopy(topic_id=None, czxid=czxid, partitions=partitions)}, states=same)
        for czxid in (1, 2)
    )
    recorded = [(change.kind, change.after is None) for change in difference(before, after)]
    assert recorded == [
        (Kind.LEADERSHIP, True), (Kind.TOPIC, True),
        (Kind.TOPIC, False), (Kind.ASSIGNMENT, False), (Kind.LEADERSHIP, False),
    ]  # fmt: skip


def test_versions_that_nobody_saw_are_counted() -> None:
    key = TopicPartition(TopicName("a"), PartitionId(0))
    before, after = (StateCopy(states={key: state(1, (BrokerId(1),), epoch, epoch)}) for epoch in (3, 7))
    assert count_missed_versions(difference(before, after)) == 3
