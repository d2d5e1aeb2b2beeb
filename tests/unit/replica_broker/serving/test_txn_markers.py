"""The answers to a coordinator that sends transaction markers."""

import pytest
from kio.schema.types import ProducerId
from kio.schema.types import TopicName as WireTopicName
from kio.schema.write_txn_markers.v1.request import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kio.static.primitive import i16, i32

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from controller_core.wire.messages import ErrorCode
from replica_broker.log.errors import InvalidProducerEpoch
from replica_broker.log.log import Appended
from replica_broker.log.producers.markers import EndOfTransaction
from replica_broker.replicas.errors import NotEnoughReplicas, NotLeader
from replica_broker.serving.commands.txn_markers import on_write_txn_markers
from tests.unit.replica_broker.serving.stand_ins import StandInReplicas

HERE, ELSEWHERE, LACKING, LATER = (TopicPartition(TopicName("orders"), PartitionId(number)) for number in range(4))


@pytest.mark.parametrize("is_commit", [True, False])
async def test_each_partition_of_each_marker_is_answered_for_itself(is_commit: bool) -> None:
    replicas = StandInReplicas(
        appended={
            HERE: Appended(first_offset=5, last_offset=5),
            ELSEWHERE: NotLeader(ELSEWHERE, "broker 1 leads it"),
            LACKING: NotEnoughReplicas(LACKING, "one"),
            LATER: InvalidProducerEpoch("there is a later one"),
        }
    )
    topics = tuple(
        WritableTxnMarkerTopic(name=WireTopicName("orders"), partition_indexes=indexes)
        for indexes in ((i32(0), i32(1)), (i32(2), i32(3)))
    )
    marker = WritableTxnMarker(
        producer_id=ProducerId(5),
        producer_epoch=i16(2),
        transaction_result=is_commit,
        topics=topics,
        coordinator_epoch=i32(1),
    )
    answer = await on_write_txn_markers(replicas.cast_to_replicas(), WriteTxnMarkersRequest(markers=(marker,)))
    (of_producer,) = answer.markers
    assert [[one.error_code for one in topic.partitions] for topic in of_producer.topics] == [
        [ErrorCode.none, ErrorCode.not_leader_or_follower],
        [ErrorCode.not_enough_replicas, ErrorCode.invalid_producer_epoch],
    ]
    end = EndOfTransaction(producer_id=5, producer_epoch=2, coordinator_epoch=1, is_commit=is_commit)
    assert replicas.asked == [(where, end) for where in (HERE, ELSEWHERE, LACKING, LATER)]
