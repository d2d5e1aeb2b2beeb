"""Znodes near the size limit of ZooKeeper: a larger one is refused with a message, and nothing else suffers."""

from bisect import bisect_left
from collections.abc import Iterable
from uuid import UUID

import pytest
from kio.schema.create_partitions.v3.request import CreatePartitionsRequest, CreatePartitionsTopic
from kio.schema.create_topics.v7.request import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i16, i32, i32Timedelta

from controller_core.model.ids import PartitionId, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import ReplicaAssignment, TopicAssignment
from controller_core.wire.messages import ErrorCode
from controller_core.zk import codecs, paths
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.request_size import DEFAULT_JUTE_MAXBUFFER_BYTES
from controller_core.zk.session import Create, ZkNode, ZkVersion
from simulation.cluster import Cluster, alter_reassignments, ids, tp

SMALL_LIMIT = 100_000
"""The size limit of most of these tests: the smaller it is, the fewer partitions reach it."""
OLD, NEW = (50001, 50002, 50003), (50004, 50005, 50006)
"""Large ids make large znodes of few partitions."""


@pytest.fixture
async def served(cluster: Cluster) -> Cluster:
    cluster.zk.jute_maxbuffer_bytes = SMALL_LIMIT
    cluster.start_brokers(*OLD, *NEW)
    await cluster.serve()
    return cluster


async def assert_serves(cluster: Cluster) -> None:
    """The first term goes on, and a new topic gets its leader."""
    cluster.create_topic("new", OLD)
    await cluster.settle()
    assert cluster.leadership(tp("new"))[0] == OLD[0]
    assert codecs.decode_controller_epoch(cluster.data(paths.CONTROLLER_EPOCH) or b"") == 1
    assert cluster.leader_of(tp("new")) is not None


def refusals(cluster: Cluster) -> list[str]:
    return [line["event"] for line in cluster.logs if line["log_level"] == "error"]


def list_partitions(name: str, numbers: Iterable[int]) -> list[TopicPartition]:
    return [tp(name, number) for number in numbers]


# Reassignments


COUNT = 1250
"""At rest their znode is half of the limit. If all of them move, it is too large."""


@pytest.fixture
async def large(served: Cluster) -> Cluster:
    served.create_topic("large", *[OLD] * COUNT)
    await served.settle()
    return served


async def test_of_a_request_the_part_that_does_not_fit_is_refused_and_the_rest_begun(large: Cluster) -> None:
    response = await large.request(alter_reassignments(dict.fromkeys(list_partitions("large", range(COUNT)), NEW)))
    outcomes = [(p.error_code, p.error_message) for topic in response.responses for p in topic.partitions]
    refused = [message for code, message in outcomes if code is ErrorCode.invalid_replica_assignment]
    begun = len([code for code, _ in outcomes if code is ErrorCode.none])
    assert 0 < begun < COUNT
    assert begun + len(refused) == COUNT
    assert all(message and "reassign fewer partitions of the topic at a time" in message for message in refused)
    running = [a for a in large.topic("large").partitions.values() if a.is_being_reassigned]
    assert len(running) == begun
    assert len(large.data(paths.topic(TopicName("large"))) or b"") < SMALL_LIMIT
    await assert_serves(large)


async def test_what_runs_can_be_cancelled_where_there_is_no_room_for_more(large: Cluster) -> None:
    half = dict.fromkeys(list_partitions("large", range(COUNT // 4)), NEW)
    rest = dict.fromkeys(list_partitions("large", range(COUNT // 4, COUNT)), NEW)
    await large.request(alter_reassignments(half))
    response = await large.request(alter_reassignments(rest))
    assert {p.error_code for topic in response.responses for p in topic.partitions} != {ErrorCode.none}
    cancelled = await large.request(alter_reassignments(dict.fromkeys(half)))
    assert {p.error_code for topic in cancelled.responses for p in topic.partitions} == {ErrorCode.none}
    assert not any(large.assignment(p).is_being_reassigned for p in half)
    await assert_serves(large)


async def test_of_a_plan_the_part_that_does_not_fit_is_taken_out_and_said(large: Cluster) -> None:
    large.request_reassignment(dict.fromkeys(list_partitions("large", range(COUNT)), NEW))
    await large.settle()
    left = codecs.decode_reassignment(large.data(paths.REASSIGN_PARTITIONS) or b"").partitions
    running = [tp("large", p) for p, a in large.topic("large").partitions.items() if a.is_being_reassigned]
    assert 0 < len(left) < COUNT
    assert list(left) == running
    (said,) = [line for line in large.logs if line["event"] == "reassignments refused"]
    assert "fewer partitions" in said["reason"]
    await assert_serves(large)


async def test_a_plan_near_the_limit_with_one_refused_entry_goes_on(served: Cluster) -> None:
    """The plan is larger than a transaction of many groups, and the rest of it is written back in one piece."""
    served.zk.jute_maxbuffer_bytes = DEFAULT_JUTE_MAXBUFFER_BYTES
    await served.active.kill()
    name = "n" * 249
    served.create_topic(name, *[OLD[:1]] * 3000)
    await served.serve()
    wanted = dict.fromkeys(list_partitions(name, range(3000)), NEW[:1])
    served.request_reassignment({**wanted, tp("absent"): NEW})
    assert len(served.data(paths.REASSIGN_PARTITIONS) or b"") > 890_000
    await served.settle()
    assert codecs.decode_reassignment(served.data(paths.REASSIGN_PARTITIONS) or b"").partitions.keys() == wanted.keys()
    assert served.assignment(tp(name, 2999)).adding == NEW[:1]
    assert served.active.term.identity.epoch == 2, "of the second process"


async def test_a_plan_too_large_to_be_written_back_stays_and_stops_nothing(served: Cluster) -> None:
    """The servers accept more than the limit of the controller. The user who wrote the plan knows that; the controller
    does not."""
    served.create_topic("orders", *[OLD] * 2)
    await served.settle()
    absent = {tp("absent", number): NEW for number in range(2000)}
    served.request_reassignment({tp("orders"): NEW, **absent, tp("orders", 1): OLD[::-1]})
    served.zk.jute_maxbuffer_bytes = 1 << 22
    assert len(served.data(paths.REASSIGN_PARTITIONS) or b"") > SMALL_LIMIT
    await served.settle()
    assert served.assignment(tp("orders")).adding == ids(NEW)
    await assert_serves(served)


async def test_a_topic_too_large_to_be_rewritten_is_not_reassigned(served: Cluster) -> None:
    served.create_topic("huge", *[OLD] * 4200)
    served.zk.jute_maxbuffer_bytes = 1 << 22
    await served.settle()
    response = await served.request(alter_reassignments({tp("huge"): NEW}))
    (partition,) = response.responses[0].partitions
    assert partition.error_code is ErrorCode.invalid_replica_assignment
    assert "the topic's znode would need" in partition.error_message
    assert served.leadership(tp("huge", 4199))[0] == OLD[0]
    await assert_serves(served)


async def test_removed_replicas_are_remembered_where_there_is_little_room(large: Cluster) -> None:
    """Their entries are written with the topic's znode, fewer of them at a time."""
    limit = SMALL_LIMIT - 33_000
    fitting = [tp("large", number) for number in range(COUNT)]
    response = await large.request(alter_reassignments(dict.fromkeys(fitting, (*NEW, *OLD))))
    begun = [
        tp("large", p.partition_index)
        for topic in response.responses
        for p in topic.partitions
        if p.error_code is ErrorCode.none
    ]
    assert len(large.data(paths.topic(TopicName("large"))) or b"") > limit - 1000
    for number in NEW:
        large.kill_broker(number)
    await large.settle()
    await large.request(alter_reassignments(dict.fromkeys(begun)))
    assert len(large.zk.tree.children(paths.REMOVED_REPLICAS) or ()) == 3 * len(begun)
    assert not any(a.is_being_reassigned for a in large.topic("large").partitions.values())
    await assert_serves(large)


# Topics


def creation(name: str, partitions: int) -> CreateTopicsRequest:
    assignments = tuple(
        CreatableReplicaAssignment(partition_index=i32(number), broker_ids=tuple(WireBrokerId(b) for b in OLD))
        for number in range(partitions)
    )
    return CreateTopicsRequest(
        topics=(
            CreatableTopic(
                name=WireTopicName(name),
                num_partitions=i32(-1),
                replication_factor=i16(-1),
                assignments=assignments,
                configs=(),
            ),
        ),
        timeout=i32Timedelta.parse(i32Timedelta.resolution * 30_000_000),
        validate_only=False,
    )


async def test_a_topic_is_created_up_to_the_limit_and_refused_above(served: Cluster) -> None:
    def fits(count: int) -> bool:
        partitions = {PartitionId(n): ReplicaAssignment(replicas=ids(OLD)) for n in range(count)}
        data = codecs.encode_topic(TopicAssignment(topic_id=TopicId(UUID(int=0)), partitions=partitions))
        config = Create(path=paths.topic_config(TopicName("wide")), data=codecs.encode_config({}))
        create = Create(path=paths.topic(TopicName("wide")), data=data)
        return served.active.term.writer.why_too_large([config, create]) is None

    most = bisect_left(range(9000), True, key=lambda count: not fits(count)) - 1
    refused = (await served.request(creation("wide", most + 1))).topics[0]
    assert refused.error_code is ErrorCode.invalid_partitions
    assert f"{most + 1} partitions" in refused.error_message
    assert not served.exists(paths.topic(TopicName("wide")))
    created = (await served.request(creation("wide", most))).topics[0]
    assert created.error_code is ErrorCode.none
    growing = CreatePartitionsRequest(
        topics=(CreatePartitionsTopic(name=WireTopicName("wide"), count=i32(most + 5), assignments=None),),
        timeout=i32Timedelta.parse(i32Timedelta.resolution * 30_000_000),
        validate_only=False,
    )
    grown = (await served.request(growing)).results[0]
    assert grown.error_code is ErrorCode.invalid_partitions
    assert len(served.topic("wide").partitions) == most
    await assert_serves(served)


async def test_a_topic_that_cannot_be_mended_is_left_alone_and_the_others_are_served(served: Cluster) -> None:
    """It lacks its id, and is too large for us to write it with one. Servers with a higher limit took it."""
    served.zk.jute_maxbuffer_bytes = 1 << 22
    served.create_topic("huge", *[OLD] * 4200, has_id=False)
    served.create_topic("orders", OLD)
    await served.settle()
    assert "a topic's znode is too large to be written and stays as it is" in refusals(served)
    assert served.leadership(tp("orders"))[0] == OLD[0]
    assert not served.exists(paths.partition_state(tp("huge")))
    served.put(
        paths.topic(TopicName("huge")),
        codecs.encode_topic(
            TopicAssignment(topic_id=None, partitions={PartitionId(0): ReplicaAssignment(replicas=ids(OLD))})
        ),
    )
    await served.settle()
    assert served.leadership(tp("huge"))[0] == OLD[0]
    await assert_serves(served)


# Other writes


def test_a_state_that_could_not_be_written_again_is_none() -> None:
    isr = ",".join(map(str, range(1, 20_000)))
    node = ZkNode(
        data=f'{{"version":1,"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":[{isr}]}}'.encode(),
        czxid=1,
        mzxid=1,
        version=ZkVersion(0),
        ephemeral_owner=0,  # type: ignore[arg-type]  # a plain number
    )
    with pytest.raises(MalformedZnode, match="the limit is 65536"):
        codecs.decode_partition_state(tp("orders"), node)


@pytest.mark.parametrize("count", [0, 1, 12, 1234])
@pytest.mark.parametrize("moving", [True, False])
def test_the_size_of_a_topic_is_known_without_writing_it(count: int, moving: bool) -> None:
    assignment = ReplicaAssignment(
        replicas=ids((4, 5, 1, 22)), adding=ids((4, 5)), removing=ids((1, 22)), origin_order=ids((22, 1))
    )
    partitions = {PartitionId(n): assignment if moving else ReplicaAssignment(replicas=ids(OLD)) for n in range(count)}
    data = codecs.encode_topic(TopicAssignment(topic_id=TopicId(UUID(int=1)), partitions=partitions))
    assert len(data) <= codecs.topic_bytes(partitions) <= len(data) + 50
