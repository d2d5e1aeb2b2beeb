"""DescribeLogDirs (KIP-113), in three versions: each newer answer tells more, and older brokers do not know them."""

from collections.abc import Iterable
from typing import Final

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


def make_log_sizes_request(partitions: Iterable[TopicPartition]) -> DescribeLogDirsRequest2:
    """Return a request for the sizes of these partitions' logs."""
    return DescribeLogDirsRequest2(
        topics=tuple(
            DescribableLogDirTopic(topic=WireTopicName(topic), partitions=tuple(i32(each.partition) for each in group))
            for topic, group in group_by_topic(partitions)
        )
    )
