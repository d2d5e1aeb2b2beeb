"""DescribeQuorum (KIP-595), in three versions: each newer answer tells more, and older nodes do not know them."""

from typing import Final

from kio.schema.describe_quorum.v0 import DescribeQuorumRequest as DescribeQuorumRequest0
from kio.schema.describe_quorum.v0.request import PartitionData as PartitionData0
from kio.schema.describe_quorum.v0.request import TopicData as TopicData0
from kio.schema.describe_quorum.v1 import DescribeQuorumRequest as DescribeQuorumRequest1
from kio.schema.describe_quorum.v1.request import PartitionData as PartitionData1
from kio.schema.describe_quorum.v1.request import TopicData as TopicData1
from kio.schema.describe_quorum.v2 import DescribeQuorumRequest as DescribeQuorumRequest2
from kio.schema.describe_quorum.v2.request import PartitionData as PartitionData2
from kio.schema.describe_quorum.v2.request import TopicData as TopicData2
from kio.schema.types import TopicName as WireTopicName
from kio.static.primitive import i32

from controller_core.model.topics.topic_names import CLUSTER_METADATA_TOPIC

_TOPIC: Final = WireTopicName(CLUSTER_METADATA_TOPIC)
_PARTITION: Final = i32(0)

QUORUM_LEADER: Final = DescribeQuorumRequest0(
    topics=(TopicData0(topic_name=_TOPIC, partitions=(PartitionData0(partition_index=_PARTITION),)),)
)
"""Asks for the leader, its epoch, the committed offset, and the voters."""
QUORUM_LAG: Final = DescribeQuorumRequest1(
    topics=(TopicData1(topic_name=_TOPIC, partitions=(PartitionData1(partition_index=_PARTITION),)),)
)
"""Asks also when each voter last fetched and was caught up (KIP-836)."""
QUORUM_ADDRESSES: Final = DescribeQuorumRequest2(
    topics=(TopicData2(topic_name=_TOPIC, partitions=(PartitionData2(partition_index=_PARTITION),)),)
)
"""Asks also for the addresses of the voters (KIP-853)."""
