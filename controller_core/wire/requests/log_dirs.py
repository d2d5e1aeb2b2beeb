"""DescribeLogDirs and AlterReplicaLogDirs (KIP-113). The first is used in three versions: each newer answer tells more,
and older brokers do not know them."""

from collections.abc import Iterable, Mapping
from typing import Final

from kio.schema.alter_replica_log_dirs.v2 import AlterReplicaLogDirsRequest
from kio.schema.alter_replica_log_dirs.v2.request import AlterReplicaLogDir, AlterReplicaLogDirTopic
from kio.schema.describe_log_dirs.v2 import DescribeLogDirsRequest as DescribeLogDirsRequest2
from kio.schema.describe_log_dirs.v2.request import DescribableLogDirTopic
from kio.schema.describe_log_dirs.v4 import DescribeLogDirsRequest as DescribeLogDirsRequest4
from kio.schema.describe_log_dirs.v5 import DescribeLogDirsRequest as DescribeLogDirsRequest5
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from controller_core.model.ids import TopicPartition, group_by_topic

DISK_SIZES: Final = DescribeLogDirsRequest4(topics=())
"""Asks for the directories and the sizes of their disks (KIP-827), without their content."""
CORDONS: Final = DescribeLogDirsRequest5(topics=())
"""Asks for the directories, and if they are cordoned (KIP-1066), without their content."""
ALL_LOGS: Final = DescribeLogDirsRequest5(topics=None)
"""Asks for the directories, the sizes of their disks, cordons, and all logs."""


def make_log_sizes_request(partitions: Iterable[TopicPartition]) -> DescribeLogDirsRequest2:
    """Return a request for the sizes of these partitions' logs."""
    return DescribeLogDirsRequest2(
        topics=tuple(
            DescribableLogDirTopic(topic=WireTopicName(topic), partitions=tuple(i32(each.partition) for each in group))
            for topic, group in group_by_topic(partitions)
        )
    )


def make_replica_log_dirs_request(wanted: Mapping[TopicPartition, str]) -> AlterReplicaLogDirsRequest:
    """Return a request to put replicas into these log directories."""
    by_path: dict[str, list[TopicPartition]] = {}
    for partition, path in wanted.items():
        by_path.setdefault(path, []).append(partition)
    return AlterReplicaLogDirsRequest(
        dirs=tuple(
            AlterReplicaLogDir(
                path=path,
                topics=tuple(
                    AlterReplicaLogDirTopic(
                        name=WireTopicName(topic), partitions=tuple(i32(each.partition) for each in group)
                    )
                    for topic, group in group_by_topic(partitions)
                ),
            )
            for path, partitions in by_path.items()
        )
    )
