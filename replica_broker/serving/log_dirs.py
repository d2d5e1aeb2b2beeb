"""DescribeLogDirs: the directories and sizes of this broker's replicas."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

from kio.schema.describe_log_dirs.v4.request import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.response import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32, i64

from controller_core.model.ids import TopicPartition
from controller_core.wire.codecs.versions import Versions
from controller_core.wire.messages import NO_THROTTLE
from replica_broker.log.directories import LogDirectories
from replica_broker.replicas.partition import Partition
from replica_broker.replicas.replicas import Replicas

VERSIONS: Final = Versions(DescribeLogDirsRequest, oldest=1)


def on_describe_log_dirs(
    directories: LogDirectories, replicas: Replicas, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse:
    """Answer for every directory, including failed ones, with the requested replicas."""
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(topic.topic, index) for topic in request.topics for index in topic.partitions}  # type: ignore[arg-type]
    here: dict[PurePath, list[tuple[TopicPartition, Partition]]] = defaultdict(list)
    for where, partition in replicas.hosted.items():
        path = directories.find_path(where)
        if path is not None and (wanted is None or where in wanted):
            here[path].append((where, partition))
    return DescribeLogDirsResponse(
        throttle_time=NO_THROTTLE,
        error_code=ErrorCode.none,
        results=tuple(
            DescribeLogDirsResult(
                error_code=ErrorCode.kafka_storage_error if path in directories.offline_paths else ErrorCode.none,
                log_dir=str(path),
                topics=tuple(_topics(here[path])),
            )
            for path in directories.paths
        ),
    )


def _topics(partitions: list[tuple[TopicPartition, Partition]]) -> Iterator[DescribeLogDirsTopic]:
    by_topic: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for where, partition in partitions:
        lag = max(0, partition.log.log_end_offset - partition.replica.high_watermark)
        by_topic[where.topic].append(
            DescribeLogDirsPartition(
                partition_index=i32(where.partition),
                partition_size=i64(partition.log.size_bytes),
                offset_lag=i64(lag),
                is_future_key=False,
            )
        )
    for name, found in by_topic.items():
        yield DescribeLogDirsTopic(name=WireTopicName(name), partitions=tuple(found))
