"""Commands in the versions of an older inter-broker protocol: read as if they were new, and answered in their own."""

import struct
from dataclasses import replace
from typing import Any

import pytest

from controller_core.model.ids import (
    BrokerEpoch,
    BrokerId,
    ControllerEpoch,
    LeaderEpoch,
    PartitionEpoch,
    PartitionId,
    TopicName,
)
from controller_core.wire.codecs.frames import encode_request
from controller_core.wire.codecs.versions import convert
from controller_core.wire.messages import (
    ErrorCode,
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from replica_broker.serving.commands.older_versions import (
    LEADER_AND_ISR,
    STOP_REPLICA,
    UPDATE_METADATA,
    CommandVersions,
    LeaderAndIsrResponse4,
    leader_and_isr_answer,
)
from tests.unit.replica_broker.serving.told import ORDERS_ID, state, topic, update

ONE, TWO = BrokerId(1), BrokerId(2)


def leader_and_isr() -> LeaderAndIsrRequest:
    decided = LeaderAndIsrPartitionState(
        partition_index=PartitionId(0),
        controller_epoch=ControllerEpoch(3),
        leader=ONE,
        leader_epoch=LeaderEpoch(4),
        isr=(ONE, TWO),
        partition_epoch=PartitionEpoch(5),
        replicas=(ONE, TWO),
        adding_replicas=(TWO,),
        is_new=True,
        leader_recovery_state=1,
    )
    return LeaderAndIsrRequest(
        controller_id=TWO,
        controller_epoch=ControllerEpoch(3),
        broker_epoch=BrokerEpoch(77),
        topic_states=(
            LeaderAndIsrTopicState(topic_name=TopicName("orders"), topic_id=ORDERS_ID, partition_states=(decided,)),
        ),
        live_leaders=(LeaderAndIsrLiveLeader(broker_id=ONE, host_name="here", port=9092),),
    )


STOP = StopReplicaRequest(
    controller_id=TWO,
    controller_epoch=ControllerEpoch(3),
    broker_epoch=BrokerEpoch(77),
    topic_states=(
        StopReplicaTopicState(
            topic_name=TopicName("orders"),
            partition_states=(
                StopReplicaPartitionState(
                    partition_index=PartitionId(0), leader_epoch=LeaderEpoch(4), delete_partition=True
                ),
            ),
        ),
    ),
)


def read_again(versions: CommandVersions[Any], request: Any, version: int) -> Any:
    """A request as it comes in when a controller sends it in some version."""
    frame = encode_request(convert(request, versions.request_type(version)), 1, "controller")
    read = versions.decode(frame[4:], version)
    assert read.__version__ == version
    return versions.lift(read)


@pytest.mark.parametrize("version", range(LEADER_AND_ISR.min, LEADER_AND_ISR.max + 1))
def test_what_an_older_command_does_not_say_has_its_default(version: int) -> None:
    asked = leader_and_isr()
    (topic_state,) = asked.topic_states
    (decided,) = topic_state.partition_states
    known = replace(
        topic_state,
        topic_id=ORDERS_ID if version >= 5 else None,
        partition_states=(replace(decided, leader_recovery_state=1 if version >= 6 else 0),),
    )
    assert read_again(LEADER_AND_ISR, asked, version) == replace(asked, topic_states=(known,))


@pytest.mark.parametrize("version", range(UPDATE_METADATA.min, UPDATE_METADATA.max + 1))
def test_metadata_of_an_older_protocol_names_topics_without_ids(version: int) -> None:
    asked = update(topic("orders", [state(0, 3)]))
    (told,) = asked.topic_states
    known = replace(told, topic_id=ORDERS_ID if version >= 7 else None)
    assert read_again(UPDATE_METADATA, asked, version) == replace(asked, topic_states=(known,))


@pytest.mark.parametrize("version", range(STOP_REPLICA.min, STOP_REPLICA.max + 1))
def test_replicas_are_stopped_by_either_version(version: int) -> None:
    assert read_again(STOP_REPLICA, STOP, version) == STOP


def test_an_older_answer_names_the_topic_of_each_error() -> None:
    errors = (LeaderAndIsrPartitionError(partition_index=PartitionId(0), error_code=ErrorCode.kafka_storage_error),)
    response = LeaderAndIsrResponse(
        error_code=ErrorCode.none, topics=(LeaderAndIsrTopicError(topic_id=None, partition_errors=errors),)
    )
    assert leader_and_isr_answer(leader_and_isr(), response, 5) is response
    answer = leader_and_isr_answer(leader_and_isr(), response, 4)
    # The fields as Kafka's definition of the message has them, each object with its (empty) tagged fields behind it.
    body = struct.pack(">hb", 0, 2) + b"\x07orders" + struct.pack(">ih", 0, 56) + b"\0\0"
    assert LEADER_AND_ISR.encode(answer, 9) == struct.pack(">iib", 5 + len(body), 9, 0) + body


@pytest.mark.parametrize("error_code", [ErrorCode.stale_controller_epoch, ErrorCode.stale_broker_epoch])
def test_an_older_command_that_is_refused_as_a_whole_is_answered_without_partitions(error_code: ErrorCode) -> None:
    answer = leader_and_isr_answer(leader_and_isr(), LeaderAndIsrResponse(error_code=error_code, topics=()), 4)
    assert answer == LeaderAndIsrResponse4(error_code=error_code, partition_errors=())
