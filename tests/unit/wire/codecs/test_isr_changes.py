"""AlterPartition requests are read, and their answers written, quickly, with the same result as kio."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.alter_partition.v3 import request as plain_request
from kio.schema.alter_partition.v3 import response as plain_response
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i8, i32

from controller_core.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, PartitionEpoch, PartitionId, TopicId
from controller_core.model.metadata import LeaderAndIsr, LeaderRecoveryState, PartitionState
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import Unencodable, decode_request, encode_request, encode_response
from controller_core.wire.codecs.isr_changes import convert_request, read_request, read_usual, write_response
from controller_core.wire.messages import NO_THROTTLE, AlterPartitionResponse, ErrorCode
from controller_core.wire.messages.alter_partition import AnsweredIsr, AnsweredTopic
from tests.unit.wire.codecs.strategies import damage, messages

numbers = st.integers(-(2**31), 2**31 - 1)
topic_ids = st.none() | st.uuids().filter(lambda uuid: uuid.int != 0).map(TopicId)
brokers = st.integers(0, 2**31 - 1).map(BrokerId)
partition_states = st.builds(
    PartitionState,
    leader_and_isr=st.builds(
        LeaderAndIsr,
        leader=brokers,
        isr=st.lists(brokers, max_size=4).map(tuple) | st.just(tuple(BrokerId(number) for number in range(130))),
        leader_epoch=numbers.map(LeaderEpoch),
        leader_recovery_state=st.sampled_from(LeaderRecoveryState),
    ),
    controller_epoch=numbers.map(ControllerEpoch),
    partition_epoch=numbers.map(PartitionEpoch),
)
answered_isrs = st.builds(AnsweredIsr, numbers.map(PartitionId), partition_states | st.sampled_from(ErrorCode))
topics = st.lists(st.builds(AnsweredTopic, topic_ids, st.lists(answered_isrs)), max_size=4).map(tuple)


def make_request(partitions: int = 3, members: int = 3) -> plain_request.AlterPartitionRequest:
    """A request for one topic."""
    isr = tuple(plain_request.BrokerState(broker_id=WireBrokerId(number)) for number in range(members))
    asked = (
        plain_request.PartitionData(
            partition_index=i32(number), leader_epoch=i32(4), new_isr_with_epochs=isr, partition_epoch=i32(9)
        )
        for number in range(partitions)
    )
    topic = plain_request.TopicData(topic_id=None, partitions=tuple(asked))
    return plain_request.AlterPartitionRequest(broker_id=WireBrokerId(1), topics=(topic,))


def content_of(message: plain_request.AlterPartitionRequest) -> bytes:
    return encode_request(message, 5, "broker")[4:]


@given(messages(plain_request.AlterPartitionRequest))
def test_a_request_is_read_at_once_and_asks_what_the_message_asks(message: plain_request.AlterPartitionRequest) -> None:
    assert read_usual(content_of(message)) == read_request(content_of(message)) == convert_request(message)


@pytest.mark.parametrize("partitions", [1, 126, 127, 128, 16382, 16383])
def test_a_request_for_any_number_of_partitions_is_read_at_once(partitions: int) -> None:
    message = make_request(partitions)
    assert read_usual(content_of(message)) == convert_request(message)


@pytest.mark.parametrize("members", [126, 127, 200])
def test_an_isr_of_hundreds_is_read(members: int) -> None:
    message = make_request(1, members)
    assert read_request(content_of(message)) == convert_request(message)


@given(messages(plain_request.AlterPartitionRequest), st.data())
def test_bytes_that_somebody_changed_are_read_as_the_general_decoder_reads_them(
    message: plain_request.AlterPartitionRequest, data: st.DataObject
) -> None:
    content = data.draw(damage(content_of(message), start=8))
    try:
        expected = decode_request(plain_request.AlterPartitionRequest, content)
    except Undecodable:
        with pytest.raises(Undecodable):
            read_request(content)
    else:
        assert read_request(content) == convert_request(expected)


def plain_result(answered: AnsweredIsr) -> plain_response.PartitionData:
    """kio's way to answer for a partition."""
    partition, outcome = answered
    nothing: Any = {"leader_id": WireBrokerId(0), "leader_epoch": i32(0), "partition_epoch": i32(0)}
    if isinstance(outcome, ErrorCode):
        return plain_response.PartitionData(partition_index=i32(partition), error_code=outcome, **nothing)
    leadership = outcome.leader_and_isr
    return plain_response.PartitionData(
        partition_index=i32(partition),
        error_code=ErrorCode.none,
        leader_id=WireBrokerId(leadership.leader),
        leader_epoch=i32(leadership.leader_epoch),
        isr=tuple(WireBrokerId(member) for member in leadership.isr),
        leader_recovery_state=i8(leadership.leader_recovery_state),
        partition_epoch=i32(outcome.partition_epoch),
    )


def plain(response: AlterPartitionResponse) -> plain_response.AlterPartitionResponse:
    """The answer as a message of kio's."""
    return plain_response.AlterPartitionResponse(
        throttle_time=NO_THROTTLE,
        error_code=response.error_code,
        topics=tuple(
            plain_response.TopicData(topic_id=topic_id, partitions=tuple(map(plain_result, partitions)))
            for topic_id, partitions, _ in response.topics
        ),
    )


@given(st.builds(AlterPartitionResponse, error_code=st.sampled_from(ErrorCode), topics=topics), numbers)
def test_an_answer_is_written_as_kio_writes_it(response: AlterPartitionResponse, correlation_id: int) -> None:
    assert write_response(response, correlation_id) == encode_response(plain(response), correlation_id)


@pytest.mark.parametrize("partition", [2**31, -(2**31) - 1])
def test_an_answer_that_no_field_can_carry_is_not_written(partition: int) -> None:
    answered = AnsweredIsr(PartitionId(partition), ErrorCode.none)
    response = AlterPartitionResponse(error_code=ErrorCode.none, topics=(AnsweredTopic(None, [answered]),))
    with pytest.raises(Unencodable, match="AlterPartitionResponse cannot be encoded"):
        write_response(response, 5)
