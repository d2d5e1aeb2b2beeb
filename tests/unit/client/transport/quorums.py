"""Servers' answers about a quorum of controllers: if they know one, and its leader."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta

from kio.schema.api_versions.v3 import ApiVersionsResponse
from kio.schema.api_versions.v3.response import ApiVersion
from kio.schema.describe_quorum.v0 import DescribeQuorumResponse
from kio.schema.describe_quorum.v0.response import PartitionData, TopicData
from kio.schema.describe_quorum.v1 import DescribeQuorumResponse as DescribeVotesResponse
from kio.schema.describe_quorum.v1.response import PartitionData as VotesData
from kio.schema.describe_quorum.v1.response import ReplicaState
from kio.schema.describe_quorum.v1.response import TopicData as VotesTopic
from kio.schema.errors import ErrorCode
from kio.schema.types import BrokerId as WireBrokerId
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i16, i32, i32Timedelta, i64

NO_TIME = i32Timedelta.parse(timedelta())

CONTROLLED_SHUTDOWN, DESCRIBE_QUORUM = 7, 55


def make_api_versions(*, has_quorum: bool) -> ApiVersionsResponse:
    """Return the APIs of a broker without ZooKeeper, or of one with it."""
    key = DESCRIBE_QUORUM if has_quorum else CONTROLLED_SHUTDOWN
    known = ApiVersion(api_key=i16(key), min_version=i16(0), max_version=i16(3))
    return ApiVersionsResponse(error_code=ErrorCode.none, api_keys=(known,), throttle_time=NO_TIME)


def quorum_decided(offset: int) -> DescribeQuorumResponse:
    """Return an answer of a quorum that has decided all below this offset."""
    return quorum_led_by(101, committed=offset)


def quorum_led_by(leader: int, error_code: ErrorCode = ErrorCode.none, *, committed: int = 0) -> DescribeQuorumResponse:
    """Return an answer about the quorum in epoch 5. Leader -1: it has none."""
    partition = PartitionData(
        partition_index=i32(0),
        error_code=ErrorCode.none,
        leader_id=WireBrokerId(leader),
        leader_epoch=i32(5),
        high_watermark=i64(committed),
        current_voters=(),
        observers=(),
    )
    topic = TopicData(topic_name=WireTopicName("__cluster_metadata"), partitions=(partition,))
    return DescribeQuorumResponse(error_code=error_code, topics=() if error_code else (topic,))


def votes_in(behind_ms: Mapping[int, int | None], error_code: ErrorCode = ErrorCode.none) -> DescribeVotesResponse:
    """Return the voters, and how far each is behind the leader, which is at 0. None: nothing is known of the voter.

    The leader's clock goes with the time of the running loop."""
    now_ms = 1_700_000_000_000 + int(asyncio.get_running_loop().time() * 1000)
    voters = tuple(
        ReplicaState(
            replica_id=WireBrokerId(voter),
            log_end_offset=i64(9),
            last_caught_up_timestamp=i64(-1 if behind is None else now_ms - behind),
        )
        for voter, behind in behind_ms.items()
    )
    partition = VotesData(
        partition_index=i32(0),
        error_code=ErrorCode.none,
        leader_id=WireBrokerId(next(iter(behind_ms), -1)),
        leader_epoch=i32(5),
        high_watermark=i64(9),
        current_voters=voters,
        observers=(),
    )
    topic = VotesTopic(topic_name=WireTopicName("__cluster_metadata"), partitions=(partition,))
    return DescribeVotesResponse(error_code=error_code, topics=() if error_code else (topic,))
