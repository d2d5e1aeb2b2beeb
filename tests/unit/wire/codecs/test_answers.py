"""An answer without errors is recognised from its bytes, and says the same as one that was decoded as a whole."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import PartitionId, TopicId, TopicName
from controller_core.wire.codecs.answers import (
    decode_leader_and_isr_response,
    decode_stop_replica_response,
    is_all_well,
)
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import decode_response, encode_response
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrPartitionError,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    StopReplicaPartitionError,
    StopReplicaResponse,
)
from tests.unit.wire.codecs.strategies import TEXT, damage

GOOD = (ErrorCode.none, ErrorCode.stale_controller_epoch)


def answers(codes: st.SearchStrategy[ErrorCode]) -> st.SearchStrategy[LeaderAndIsrResponse]:
    errors = st.builds(
        LeaderAndIsrPartitionError,
        partition_index=st.integers(0, 2**31 - 1).map(PartitionId),
        error_code=codes,
    )
    topics = st.builds(
        LeaderAndIsrTopicError,
        topic_id=st.uuids().filter(lambda found: found.int != 0).map(TopicId),
        partition_errors=st.lists(errors, max_size=5).map(tuple)
        | st.integers(126, 130).flatmap(lambda size: st.tuples(*size * [errors])),
    )
    return st.builds(
        LeaderAndIsrResponse, error_code=st.just(ErrorCode.none), topics=st.lists(topics, max_size=3).map(tuple)
    )


def make_stopped(codes: st.SearchStrategy[ErrorCode]) -> st.SearchStrategy[StopReplicaResponse]:
    errors = st.builds(
        StopReplicaPartitionError,
        topic_name=(TEXT | st.just("n" * 249)).map(TopicName),
        partition_index=st.integers(0, 2**31 - 1).map(PartitionId),
        error_code=codes,
    )
    return st.builds(
        StopReplicaResponse,
        error_code=st.just(ErrorCode.none),
        partition_errors=st.lists(errors, max_size=5).map(tuple),
    )


def content_of(response: LeaderAndIsrResponse | StopReplicaResponse) -> bytes:
    return encode_response(response, 5)[4:]


@given(answers(st.sampled_from(GOOD)))
def test_an_answer_with_good_codes_only_is_known_to_be_well_and_can_be_read(response: LeaderAndIsrResponse) -> None:
    found = decode_leader_and_isr_response(content_of(response))
    assert is_all_well(found)
    assert found == response
    assert (len(found.topics), tuple(found.topics)) == (len(response.topics), response.topics)


@given(answers(st.sampled_from([*GOOD, ErrorCode.kafka_storage_error, ErrorCode.unknown_server_error])), st.booleans())
def test_an_answer_with_any_other_code_is_decoded(response: LeaderAndIsrResponse, is_refused: bool) -> None:
    if is_refused:
        response = LeaderAndIsrResponse(error_code=ErrorCode.stale_broker_epoch, topics=response.topics)
    found = decode_leader_and_isr_response(content_of(response))
    codes = {partition.error_code for topic in response.topics for partition in topic.partition_errors}
    assert is_all_well(found) == (codes <= {*GOOD} and not is_refused)
    assert found == response


@given(make_stopped(st.just(ErrorCode.none)))
def test_stops_without_an_error_are_known_to_be_well_and_can_be_read(response: StopReplicaResponse) -> None:
    found = decode_stop_replica_response(content_of(response))
    assert is_all_well(found)
    assert found == response
    assert tuple(found.partition_errors) == response.partition_errors


@given(make_stopped(st.sampled_from([ErrorCode.none, ErrorCode.fenced_leader_epoch])), st.booleans())
def test_stops_of_which_any_failed_are_decoded(response: StopReplicaResponse, is_refused: bool) -> None:
    if is_refused:
        response = StopReplicaResponse(
            error_code=ErrorCode.stale_broker_epoch, partition_errors=response.partition_errors
        )
    found = decode_stop_replica_response(content_of(response))
    is_well = all(failure.error_code is ErrorCode.none for failure in response.partition_errors)
    assert is_all_well(found) == (is_well and not is_refused)
    assert found == response


@given(answers(st.sampled_from(GOOD)) | make_stopped(st.just(ErrorCode.none)), st.data())
def test_bytes_that_somebody_changed_are_read_as_they_always_were(
    response: LeaderAndIsrResponse | StopReplicaResponse, data: st.DataObject
) -> None:
    content = data.draw(damage(content_of(response), start=4))
    decode: Any = (
        decode_leader_and_isr_response if isinstance(response, LeaderAndIsrResponse) else decode_stop_replica_response
    )
    try:
        expected = decode_response(type(response), content)
    except Undecodable:
        with pytest.raises(Undecodable):
            decode(content)
    else:
        assert decode(content) == expected
