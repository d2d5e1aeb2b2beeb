"""The meaning of each answer to a control request: if the broker obeyed, and what the controller does otherwise.

A broker that answered has not necessarily obeyed. `loop.faults` maps our own errors to policies, this table those of
brokers. An answer has an error for the request as a whole, which a broker repeats for each partition. If that error is
NONE, each partition has an error of its own.

| request | error of the whole request | meaning |
| --- | --- | --- |
| any | NONE | obeyed, unless a partition says otherwise |
| any | STALE_BROKER_EPOCH | obeyed: the broker has started again, and its start sends it everything |
| any | STALE_CONTROLLER_EPOCH | raise the epoch, and send everything again |
| LeaderAndIsr, UpdateMetadata | CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST, UNSUPPORTED_VERSION | tell a person |
| LeaderAndIsr | NOT_LEADER_OR_FOLLOWER | send everything again after a pause, under later leader epochs |
| LeaderAndIsr, UpdateMetadata | all others | send everything again after a pause |
| StopReplica | all others | delete when the broker starts again |

| request | error of a partition | meaning |
| --- | --- | --- |
| LeaderAndIsr | NONE | obeyed |
| LeaderAndIsr | STALE_CONTROLLER_EPOCH | obeyed: the broker has this leader epoch already |
| LeaderAndIsr | KAFKA_STORAGE_ERROR, INCONSISTENT_TOPIC_ID | the replica is offline |
| LeaderAndIsr | UNKNOWN_SERVER_ERROR | the replica is offline; send everything again now and then |
| LeaderAndIsr | all others | tell a person; send it under a later leader epoch |
| StopReplica | NONE | obeyed |
| StopReplica | FENCED_LEADER_EPOCH | obeyed: the replica was started again under a later leader epoch |
| StopReplica | all others | delete when the broker starts again |
"""

from collections.abc import Mapping
from enum import Enum
from typing import Final

from kio.schema.errors import ErrorCode

from controller_core.wire.messages import ControlRequest, LeaderAndIsrRequest, StopReplicaRequest


class Meaning(Enum):
    """The meaning of an answer. The values are those of metrics."""

    OBEYED = "obeyed"
    """Nothing follows."""
    SEND_AGAIN = "send_again"
    """The broker is sent everything again after a pause, which grows."""
    REPLICA_OFFLINE = "replica_offline"
    """The broker cannot serve this partition. Another replica in sync leads, as if the log directory had failed."""
    RAISE_EPOCH = "raise_epoch"
    """The broker knows a later controller epoch, which ZooKeeper does not have."""
    TELL_PERSON = "tell_person"
    """Perhaps only a person can change the reason. The broker is sent everything again after the longest pause, and
    partitions that it refuses by themselves under later leader epochs."""
    DELETE_AT_START = "delete_at_start"
    """The replica is deleted when its broker starts again. Until then only its deletion waits."""


_OF_ANY_REQUEST: Final[Mapping[ErrorCode, Meaning]] = {
    ErrorCode.none: Meaning.OBEYED,
    ErrorCode.stale_broker_epoch: Meaning.OBEYED,
    ErrorCode.stale_controller_epoch: Meaning.RAISE_EPOCH,
}
_FOR_A_PERSON: Final = (
    ErrorCode.cluster_authorization_failed,
    ErrorCode.invalid_request,
    ErrorCode.unsupported_version,
)
_OF_LEADER_AND_ISR: Final[Mapping[ErrorCode, Meaning]] = {
    ErrorCode.none: Meaning.OBEYED,
    ErrorCode.stale_controller_epoch: Meaning.OBEYED,
    ErrorCode.kafka_storage_error: Meaning.REPLICA_OFFLINE,
    ErrorCode.inconsistent_topic_id: Meaning.REPLICA_OFFLINE,
    ErrorCode.unknown_server_error: Meaning.REPLICA_OFFLINE,
}
_OF_STOP_REPLICA: Final[Mapping[ErrorCode, Meaning]] = {
    ErrorCode.none: Meaning.OBEYED,
    ErrorCode.fenced_leader_epoch: Meaning.OBEYED,
}


def interpret_answer(request: type[ControlRequest], error: ErrorCode) -> Meaning:
    """Return the meaning of the error that an answer has for the request as a whole."""
    if error in _OF_ANY_REQUEST:
        return _OF_ANY_REQUEST[error]
    if request is StopReplicaRequest:
        return Meaning.DELETE_AT_START
    return Meaning.TELL_PERSON if error in _FOR_A_PERSON else Meaning.SEND_AGAIN


def interpret_partition_error(request: type[ControlRequest], error: ErrorCode) -> Meaning:
    """Return the meaning of the error of one partition, in an answer whose error for the whole request is NONE."""
    if request is LeaderAndIsrRequest:
        return _OF_LEADER_AND_ISR.get(error, Meaning.TELL_PERSON)
    if request is StopReplicaRequest:
        return _OF_STOP_REPLICA.get(error, Meaning.DELETE_AT_START)
    return Meaning.OBEYED
