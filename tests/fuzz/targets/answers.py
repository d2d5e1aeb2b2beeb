"""Answers of brokers, to control requests and to our requests as a client. The first byte chooses the expected answer."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from kio.schema.allocate_producer_ids.v0 import AllocateProducerIdsResponse
from kio.schema.alter_partition_reassignments.v0 import AlterPartitionReassignmentsResponse
from kio.schema.alter_user_scram_credentials.v0 import AlterUserScramCredentialsResponse
from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.describe_configs.v4 import DescribeConfigsResponse
from kio.schema.describe_log_dirs.v4 import DescribeLogDirsResponse
from kio.schema.elect_leaders.v2 import ElectLeadersResponse
from kio.schema.list_offsets.v8 import ListOffsetsResponse
from kio.schema.list_partition_reassignments.v0 import ListPartitionReassignmentsResponse
from kio.schema.metadata.v11 import MetadataResponse
from kio.schema.sasl_authenticate.v2 import SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeResponse
from kio.schema.update_features.v1 import UpdateFeaturesResponse
from kio.static.protocol import ResponsePayload

from controller_core.wire.codecs.answers import decode_leader_and_isr_response, decode_stop_replica_response
from controller_core.wire.codecs.decoding import Undecodable
from controller_core.wire.codecs.frames import FrameError, decode_response, encode_response
from controller_core.wire.codecs.static_configs import decode_static_config
from controller_core.wire.messages import (
    ControlledShutdownResponse,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from tests.fuzz.messages import some_messages
from tests.fuzz.target import Target


def _reader_of(response_type: type[ResponsePayload]) -> Callable[[bytes], object]:
    return lambda content: decode_response(response_type, content)


def _read_codes(content: bytes) -> object:
    """Read all codes, although none of them can be malformed."""
    return [*decode_leader_and_isr_response(content).topics]


def _read_errors(content: bytes) -> object:
    return [*decode_stop_replica_response(content).partition_errors]


_PLAIN: Final[tuple[Any, ...]] = (
    UpdateMetadataResponse, AllocateProducerIdsResponse, AlterPartitionReassignmentsResponse,
    AlterUserScramCredentialsResponse, ApiVersionsResponse, ControlledShutdownResponse, DescribeConfigsResponse,
    DescribeLogDirsResponse, ElectLeadersResponse, ListOffsetsResponse, ListPartitionReassignmentsResponse,
    MetadataResponse, SaslAuthenticateResponse, SaslHandshakeResponse, UpdateFeaturesResponse,
)  # fmt: skip
READERS: Final[tuple[tuple[Any, Callable[[bytes], object]], ...]] = (
    (LeaderAndIsrResponse, _read_codes),
    (StopReplicaResponse, _read_errors),
    (DescribeConfigsResponse, decode_static_config),
    *((each, _reader_of(each)) for each in _PLAIN),
)


def examples() -> Iterator[bytes]:
    for number, (response_type, _) in enumerate(READERS):
        for response in some_messages(response_type):
            yield bytes([number]) + encode_response(response, 7)[4:]


def read(data: bytes) -> None:
    number = data[0] if data else 0
    if number >= len(READERS):
        return
    try:
        READERS[number][1](data[1:])
    except (FrameError, Undecodable):
        return


TARGET: Final = Target(name="answers", examples=examples, read=read)
