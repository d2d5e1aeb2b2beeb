"""AlterPartition, version 3, under names that say what each part is: a leader asks for a new ISR (seed 004).

Brokers of 3.9 send version 3 to a controller that offers it. Its ISR members carry broker epochs, which are -1
in ZooKeeper mode (KIP-903). kio calls the parts of both request and response `TopicData` and `PartitionData`.
"""

from kio.schema.alter_partition.v3.request import AlterPartitionRequest
from kio.schema.alter_partition.v3.request import BrokerState as AlterPartitionIsrMember
from kio.schema.alter_partition.v3.request import PartitionData as AlterPartitionState
from kio.schema.alter_partition.v3.request import TopicData as AlterPartitionTopic
from kio.schema.alter_partition.v3.response import AlterPartitionResponse
from kio.schema.alter_partition.v3.response import PartitionData as AlterPartitionResult
from kio.schema.alter_partition.v3.response import TopicData as AlterPartitionTopicResult

__all__ = [
    "AlterPartitionIsrMember",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "AlterPartitionResult",
    "AlterPartitionState",
    "AlterPartitionTopic",
    "AlterPartitionTopicResult",
]
