"""The messages between the controller and the brokers, as values.

Apache Kafka 4 removed the four APIs of a ZooKeeper-mode controller, and kio generates what Kafka 4 has. So these four
are declared here in kio's form, at the version that brokers of `inter.broker.protocol.version` 3.9 use. Tests check
their fields against the message JSON in kafka-clients 3.9.1, and their bytes against its Java classes
(tests/unit/wire). AlterPartition is declared as the values that a leader sends and receives. Other messages are kio's.
Fields are plain integers and strings at run time: a full request has an entry for every partition of the cluster, so
constructing one checks nothing, and encoding refuses bad values.
"""

from datetime import timedelta
from typing import Final, TypeAlias

from kio.schema.allocate_producer_ids.v0 import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0 import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from kio.schema.list_partition_reassignments.v0.response import (
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from kio.static.primitive import i32Timedelta

from controller_core.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from controller_core.wire.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)
from controller_core.wire.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)
from controller_core.wire.messages.stop_replica import (
    StopReplicaPartitionError,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from controller_core.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
    UpdateMetadataTopicState,
)

ControlRequest: TypeAlias = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
ControlResponse: TypeAlias = LeaderAndIsrResponse | UpdateMetadataResponse | StopReplicaResponse

RESPONSE_TYPES: dict[type[ControlRequest], type[ControlResponse]] = {
    LeaderAndIsrRequest: LeaderAndIsrResponse,
    UpdateMetadataRequest: UpdateMetadataResponse,
    StopReplicaRequest: StopReplicaResponse,
}

NO_THROTTLE: Final = i32Timedelta.parse(timedelta())
"""The throttle time of answers if no quota is exceeded."""


def throttle_of(throttle_ms: int) -> i32Timedelta:
    """Return the throttle time that the client has to wait before its next request."""
    return i32Timedelta.parse(timedelta(milliseconds=throttle_ms))


__all__ = [
    "NO_THROTTLE",
    "RESPONSE_TYPES",
    "AllocateProducerIdsRequest",
    "AllocateProducerIdsResponse",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "ControlRequest",
    "ControlResponse",
    "ControlledShutdownRequest",
    "ControlledShutdownResponse",
    "ErrorCode",
    "LeaderAndIsrLiveLeader",
    "LeaderAndIsrPartitionError",
    "LeaderAndIsrPartitionState",
    "LeaderAndIsrRequest",
    "LeaderAndIsrResponse",
    "LeaderAndIsrTopicError",
    "LeaderAndIsrTopicState",
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "OngoingPartitionReassignment",
    "OngoingTopicReassignment",
    "RemainingPartition",
    "StopReplicaPartitionError",
    "StopReplicaPartitionState",
    "StopReplicaRequest",
    "StopReplicaResponse",
    "StopReplicaTopicState",
    "UpdateMetadataBroker",
    "UpdateMetadataEndpoint",
    "UpdateMetadataPartitionState",
    "UpdateMetadataRequest",
    "UpdateMetadataResponse",
    "UpdateMetadataTopicState",
    "throttle_of",
]
