"""AlterPartition requests are read, and their answers written, quickly, and say what kio's messages say."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.schema.types import BrokerId as WireBrokerId
from kio.static.primitive import i8, i32, i32Timedelta

from controller_core.model.ids import BrokerId, ControllerEpoch, LeaderEpoch, PartitionEpoch, PartitionId, TopicId
from controller_core.model.metadata import LeaderAndIsr, LeaderRecoveryState, PartitionState
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import decode_request, encode_request, encode_response
from controller_core.wire.codecs.isr_changes import (
    AskedTopics,
    answered,
    asked_by,
    changed,
    read_request,
    refused,
    write_response,
)
from controller_core.wire.messages import (
    AlterPartitionIsrMember,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    AlterPartitionState,
    AlterPartitionTopic,
    AlterPartitionTopicResult,
    ErrorCode,
)
from tests.unit.wire.codecs.strategies import damaged, messages

NO_TIME = i32Timedelta.parse(timedelta())
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
outcomes = st.lists(
    st.tuples(topic_ids, st.lists(st.tuples(numbers.map(PartitionId), partition_states | st.sampled_from(ErrorCode)))),
    max_size=4,
)


def asking(partitions: int = 3, members: int = 3) -> AlterPartitionRequest:
    """A request for one topic."""
    isr = tuple(AlterPartitionIsrMember(broker_id=WireBrokerId(number)) for number in range(members))
    asked = (
        AlterPartitionState(
            partition_index=i32(number), leader_epoch=i32(4), new_isr_with_epochs=isr, partition_epoch=i32(9)
        )
        for number in range(partitions)
    )
    topic = AlterPartitionTopic(topic_id=None, partitions=tuple(asked))
    return AlterPartitionRequest(broker_id=WireBrokerId(1), topics=(topic,))


def content_of(request: AlterPartitionRequest) -> bytes:
    return encode_request(request, 5, "broker")[4:]


@settings(max_examples=150, deadline=None)
@given(messages(AlterPartitionRequest))
def test_a_request_is_read_at_once_and_asks_what_the_message_asks(request: AlterPartitionRequest) -> None:
    found = read_request(content_of(request))
    assert isinstance(found.topics, AskedTopics)
    assert list(asked_by(found)) == asked_by(request)
    assert (found, tuple(found.topics)) == (request, request.topics)


@pytest.mark.parametrize("partitions", [1, 126, 127, 128, 16382, 16383])
def test_a_request_for_any_number_of_partitions_is_read(partitions: int) -> None:
    request = asking(partitions)
    found = read_request(content_of(request))
    assert list(asked_by(found)) == asked_by(request)


@pytest.mark.parametrize("members", [126, 127, 200])
def test_an_isr_of_hundreds_is_read(members: int) -> None:
    request = asking(1, members)
    assert read_request(content_of(request)) == request


@settings(max_examples=500, deadline=None)
@given(messages(AlterPartitionRequest), st.data())
def test_bytes_that_somebody_changed_are_read_as_the_general_decoder_reads_them(
    request: AlterPartitionRequest, data: st.DataObject
) -> None:
    content = data.draw(damaged(content_of(request), start=8))
    try:
        expected = decode_request(AlterPartitionRequest, content)
    except Undecodable:
        with pytest.raises(Undecodable):
            read_request(content)
    else:
        assert read_request(content) == expected


def plain_result(partition: PartitionId, outcome: PartitionState | ErrorCode) -> AlterPartitionResult:
    """The plain way to answer: an object for each partition."""
    nothing: Any = {"leader_id": WireBrokerId(0), "leader_epoch": i32(0), "partition_epoch": i32(0)}
    if isinstance(outcome, ErrorCode):
        return AlterPartitionResult(partition_index=i32(partition), error_code=outcome, **nothing)
    leadership = outcome.leader_and_isr
    return AlterPartitionResult(
        partition_index=i32(partition),
        error_code=ErrorCode.none,
        leader_id=WireBrokerId(leadership.leader),
        leader_epoch=i32(leadership.leader_epoch),
        isr=tuple(WireBrokerId(member) for member in leadership.isr),
        leader_recovery_state=i8(leadership.leader_recovery_state),
        partition_epoch=i32(outcome.partition_epoch),
    )


@settings(max_examples=150, deadline=None)
@given(outcomes, numbers)
def test_an_answer_is_written_as_kio_writes_it(
    given: list[tuple[TopicId | None, list[tuple[PartitionId, PartitionState | ErrorCode]]]], correlation_id: int
) -> None:
    quick = AlterPartitionResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        topics=answered(
            [
                (topic_id, [refused(p, o) if isinstance(o, ErrorCode) else changed(p, o) for p, o in partitions])
                for topic_id, partitions in given
            ]
        ),
    )
    plain = AlterPartitionResponse(
        throttle_time=NO_TIME,
        error_code=ErrorCode.none,
        topics=tuple(
            AlterPartitionTopicResult(topic_id=topic_id, partitions=tuple(plain_result(*one) for one in partitions))
            for topic_id, partitions in given
        ),
    )
    assert write_response(quick, correlation_id) == encode_response(plain, correlation_id)
    assert quick == plain


@settings(max_examples=50, deadline=None)
@given(messages(AlterPartitionResponse))
def test_any_other_answer_is_written_by_kio(response: AlterPartitionResponse) -> None:
    assert write_response(response, 5) == encode_response(response, 5)
