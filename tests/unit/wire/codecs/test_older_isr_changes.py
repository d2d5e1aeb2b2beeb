"""ISR requests of leaders on older brokers, and the answers, by Kafka's definitions of the versions."""

import struct
from typing import Any

import pytest
from hypothesis import given
from kio.schema.alter_partition.v2 import AlterPartitionRequest as AlterPartitionRequest2
from kio.schema.alter_partition.v2 import AlterPartitionResponse as AlterPartitionResponse2
from kio.schema.errors import ErrorCode

from controller_core.model.ids import BrokerEpoch, BrokerId, LeaderEpoch, PartitionEpoch, PartitionId, TopicName
from controller_core.wire.codecs.decoding import TooManyItems, Undecodable
from controller_core.wire.codecs.entries import encode_unsigned_varint
from controller_core.wire.codecs.frames import decode_response, encode_request
from controller_core.wire.codecs.older_isr_changes import VERSIONS
from controller_core.wire.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AnsweredIsr,
    AnsweredTopic,
    AskedIsr,
    AskedTopic,
)
from tests.unit.wire.codecs.strategies import messages
from tests.unit.wire.codecs.test_isr_changes import partition_states

HEADER = struct.pack(">hhih", 56, 0, 7, -1) + b"\0"
ORDERS = TopicName("orders")


def make_request(version: int) -> bytes:
    """Broker 3 asks for the ISR 3, 1 of orders-5, in leader epoch 9, at the znode's version 4."""
    recovery_state = b"\1" if version >= 1 else b""
    partition = struct.pack(">iiBii", 5, 9, 3, 3, 1) + recovery_state + struct.pack(">iB", 4, 0)
    return HEADER + struct.pack(">iq", 3, 77) + b"\2" + b"\7orders" + b"\2" + partition + b"\0\0"


@pytest.mark.parametrize("version", [0, 1])
def test_topics_have_names_before_version_2(version: int) -> None:
    isr = AskedIsr(PartitionId(5), LeaderEpoch(9), (BrokerId(3), BrokerId(1)), version, PartitionEpoch(4))
    assert VERSIONS.decode(make_request(version), version) == AlterPartitionRequest(
        broker_id=BrokerId(3), broker_epoch=BrokerEpoch(77), topics=(AskedTopic(None, [isr], ORDERS),)
    )


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("end", [11, 20, 30, -1])
def test_what_is_cut_is_undecodable(version: int, end: int) -> None:
    with pytest.raises(Undecodable):
        VERSIONS.decode(make_request(version)[:end], version)


def test_more_items_than_are_taken_are_refused_before_they_are_read() -> None:
    with pytest.raises(TooManyItems):
        VERSIONS.decode(make_request(0), 0, most_items=2)
    with pytest.raises(Undecodable, match="null"):
        VERSIONS.decode(HEADER + struct.pack(">iqB", 3, 77, 0), 0)
    with pytest.raises(Undecodable, match="impossible value"):
        VERSIONS.decode(make_request(0).replace(b"orders", b"\xff\xfe\xfd\xfc\xfb\xfa"), 0)


@given(messages(AlterPartitionRequest2))
def test_version_2_is_read_as_kio_reads_it(request: Any) -> None:
    read: Any = VERSIONS.decode(encode_request(request, 7, "3")[4:], 2)
    assert (read.broker_id, read.broker_epoch) == (request.broker_id, request.broker_epoch)
    assert [topic.topic_id for topic in read.topics] == [topic.topic_id for topic in request.topics]
    for topic, message in zip(read.topics, request.topics, strict=True):
        assert topic.partitions == [
            (one.partition_index, one.leader_epoch, one.new_isr, one.leader_recovery_state, one.partition_epoch)
            for one in message.partitions
        ]


@given(partition_states)
def test_an_answer_says_the_state_in_the_version_that_was_asked(state: Any) -> None:
    topic = AnsweredTopic(None, [AnsweredIsr(PartitionId(5), state)], ORDERS)
    response = AlterPartitionResponse(error_code=ErrorCode.none, topics=(topic,))
    leadership = state.leader_and_isr
    isr = encode_unsigned_varint(len(leadership.isr) + 1) + struct.pack(f">{len(leadership.isr)}i", *leadership.isr)
    start = struct.pack(">ibihB", 7, 0, 0, 0, 2) + b"\7orders" + b"\2"
    said = struct.pack(">ihii", 5, 0, leadership.leader, leadership.leader_epoch) + isr
    for version, recovery_state in ((0, b""), (1, bytes([leadership.leader_recovery_state]))):
        content = start + said + recovery_state + struct.pack(">iBBB", state.partition_epoch, 0, 0, 0)
        assert VERSIONS.encode(VERSIONS.lower(response, version), 7)[4:] == content
    kept = decode_response(AlterPartitionResponse2, VERSIONS.encode(VERSIONS.lower(response, 2), 7)[4:])
    (only,) = kept.topics[0].partitions
    assert (only.leader_id, only.isr, only.partition_epoch) == (
        leadership.leader, leadership.isr, state.partition_epoch,
    )  # fmt: skip


@pytest.mark.parametrize(("version", "code"), [(0, 55), (1, 55), (2, 107)])
def test_brokers_are_told_codes_that_they_know(version: int, code: int) -> None:
    assert ErrorCode.operation_not_attempted.value == 55
    topic = AnsweredTopic(None, [AnsweredIsr(PartitionId(5), ErrorCode.ineligible_replica)], ORDERS)
    response = AlterPartitionResponse(error_code=ErrorCode.none, topics=(topic,))
    written = VERSIONS.encode(VERSIONS.lower(response, version), 7)
    assert struct.pack(">ih", 5, code) in written
