"""Control requests are written quickly, and exactly as kio writes them."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
)
from controller_core.wire.codecs.encoding import (
    OLDEST,
    _encode_by_kio,
    control_request_pieces,
    encode_control_request,
)
from controller_core.wire.codecs.entries import make_encoded_topics
from controller_core.wire.codecs.frames import Unencodable, encode_request
from controller_core.wire.codecs.versions import convert
from controller_core.wire.messages import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    StopReplicaRequest,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from replica_broker.serving.commands.older_versions import (
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    CommandVersions,
)
from tests.unit.wire.codecs.strategies import messages

KINDS = [LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest]


def metadata(replicas: int = 3, name: str = "topic") -> UpdateMetadataRequest:
    brokers = tuple(BrokerId(number) for number in range(replicas))
    state = UpdateMetadataPartitionState(
        partition_index=PartitionId(0),
        controller_epoch=ControllerEpoch(1),
        leader=BrokerId(0),
        leader_epoch=LeaderEpoch(2),
        isr=brokers,
        zk_version=PartitionEpoch(3),
        replicas=brokers,
    )
    topic = UpdateMetadataTopicState(
        topic_name=TopicName(name), topic_id=TopicId(UUID(int=7)), partition_states=(state,)
    )
    return UpdateMetadataRequest(
        controller_id=BrokerId(9), controller_epoch=ControllerEpoch(1), topic_states=(topic,), live_brokers=()
    )


def leadership(replicas: int) -> LeaderAndIsrRequest:
    brokers = tuple(BrokerId(number) for number in range(replicas))
    state = LeaderAndIsrPartitionState(
        partition_index=PartitionId(0),
        controller_epoch=ControllerEpoch(1),
        leader=BrokerId(0),
        leader_epoch=LeaderEpoch(2),
        isr=(),
        partition_epoch=PartitionEpoch(3),
        replicas=(),
        removing_replicas=brokers,
    )
    topic = LeaderAndIsrTopicState(topic_name=TopicName("topic"), topic_id=None, partition_states=(state,))
    return LeaderAndIsrRequest(
        controller_id=BrokerId(9), controller_epoch=ControllerEpoch(1), topic_states=(topic,), live_leaders=()
    )


@given(st.data())
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_any_request_is_written_as_kio_writes_it(kind: Any, data: st.DataObject) -> None:
    request = data.draw(messages(kind))
    assert encode_control_request(request, 5, "1000") == encode_request(request, 5, "1000")


@pytest.mark.parametrize("replicas", [126, 127, 200])
def test_arrays_whose_length_takes_more_than_a_byte_are_written_as_kio_writes_them(replicas: int) -> None:
    for request in (metadata(replicas), leadership(replicas)):
        assert encode_control_request(request, 5, "1000") == encode_request(request, 5, "1000")


def test_a_long_name_is_written_as_kio_writes_it() -> None:
    request = metadata(name="t" * 249)
    assert encode_control_request(request, 5, "1000") == encode_request(request, 5, "1000")


def test_topics_that_are_sent_to_several_brokers_are_written_for_each_of_them() -> None:
    one = metadata()
    for request in (
        one,
        replace(one, broker_epoch=BrokerEpoch(4)),
        metadata(name="other"),
        one,
        replace(one, topic_states=()),
    ):
        assert encode_control_request(request, 5, "1000") == encode_request(request, 5, "1000")


@pytest.mark.parametrize("kind", ["controller", "entry", "name"])
def test_a_value_that_no_field_can_carry_is_the_makers_mistake(kind: str) -> None:
    request = metadata()
    (topic,) = request.topic_states
    match kind:
        case "controller":
            request = replace(request, controller_id=BrokerId(2**31))
        case "entry":
            state = replace(topic.partition_states[0], isr=(BrokerId(2**31),))
            request = replace(request, topic_states=(replace(topic, partition_states=(state,)),))
        case "name":
            request = replace(request, topic_states=(replace(topic, topic_name=TopicName("\ud800")),))
    with pytest.raises(Unencodable, match="UpdateMetadataRequest cannot be encoded"):
        encode_control_request(request, 5, "1000")


@given(st.data())
@pytest.mark.parametrize(
    "versions", [LEADER_AND_ISR, UPDATE_METADATA, STOP_REPLICA], ids=lambda each: each.newest.__name__
)
def test_any_request_is_written_for_older_brokers_without_what_came_since(
    versions: CommandVersions[Any], data: st.DataObject
) -> None:
    """This includes requests whose topics are bytes from the start."""
    kind: Any = versions.newest
    version = data.draw(st.integers(OLDEST[kind], versions.max))
    request = data.draw(messages(kind))
    topic_type = type(request.topic_states[0]) if request.topic_states else None
    expected = encode_request(convert(request, versions.request_type(version)), 5, "1000")
    assert b"".join(control_request_pieces(request, 5, "1000", version=version)) == expected
    if topic_type is not None:
        pieces = [_encode_by_kio(topic) for topic in request.topic_states]
        request = replace(request, topic_states=make_encoded_topics(topic_type, pieces))
        assert b"".join(control_request_pieces(request, 5, "1000", version=version)) == expected
