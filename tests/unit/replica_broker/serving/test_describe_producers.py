"""The producers of partitions in answers to tools. No answer exceeds its limit."""

from collections import deque

import pytest
from kio.schema.describe_producers.v0.request import DescribeProducersRequest, TopicRequest
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.wire.messages import ErrorCode
from replica_broker.log.producers.states import AppendedBatch, ProducerState, ProducerStates
from replica_broker.replicas.errors import NotLeader
from replica_broker.serving import describe_producers
from tests.unit.replica_broker.serving.stand_ins import StandInReplicas

FIRST, SECOND = (TopicPartition(TopicName("orders"), PartitionId(number)) for number in (0, 1))


def states(*producer_ids: int) -> ProducerStates:
    found = ProducerStates()
    found.replace({producer_id: ProducerState(epoch=2, last_timestamp_ms=70) for producer_id in producer_ids})
    return found


def make_request(*partitions: int) -> DescribeProducersRequest:
    topic = TopicRequest(name=WireTopicName("orders"), partition_indexes=tuple(map(i32, partitions)))
    return DescribeProducersRequest(topics=(topic,))


def test_each_partition_is_described_or_refused_for_itself() -> None:
    transacting = ProducerStates()
    last = AppendedBatch(4, 6, 10, 12, 70, has_log_append_time=False)
    state = ProducerState(
        epoch=2, last_timestamp_ms=70, coordinator_epoch=3, transaction_first_offset=10, batches=deque([last])
    )
    transacting.replace({7: state, 8: ProducerState(epoch=0, last_timestamp_ms=60)})
    replicas = StandInReplicas(written_by={FIRST: transacting, SECOND: NotLeader(SECOND, "this broker has no replica")})
    response = describe_producers.on_describe_producers(replicas.cast_to_replicas(), make_request(0, 1))
    first, second = response.topics[0].partitions
    assert [
        (one.producer_id, one.producer_epoch, one.last_sequence, one.last_timestamp, one.coordinator_epoch)
        for one in first.active_producers
    ] == [(7, 2, 6, 70, 3), (8, 0, -1, 60, -1)]
    assert [one.current_txn_start_offset for one in first.active_producers] == [10, -1]
    assert (second.error_code, second.active_producers) == (ErrorCode.not_leader_or_follower, ())
    assert describe_producers.VERSIONS.encode(response, 1)


def test_an_answer_has_no_more_than_it_may_and_what_is_named_twice_is_described_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(describe_producers, "MOST_PRODUCERS", 3)
    replicas = StandInReplicas(written_by={FIRST: states(1, 2), SECOND: states(3, 4)})
    response = describe_producers.on_describe_producers(replicas.cast_to_replicas(), make_request(0, 0, 1))
    first, again, second = response.topics[0].partitions
    assert len(first.active_producers) == 2
    assert (again.error_code, again.error_message) == (ErrorCode.invalid_request, "it is named twice")
    assert second.error_code is ErrorCode.invalid_request
    assert second.error_message == "it has 2 producers, the limit is 3: ask for fewer partitions"
