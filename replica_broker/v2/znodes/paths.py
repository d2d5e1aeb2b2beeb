"""The znodes of design v2. They have Kafka's names and other contents, so v2 has a chroot of its own.

The seed does not say where the ISR and the CUR are; they stand beside the leader. It does not say where epochs come
from either: `epoch` is a counter, whose version is the epoch of the last leader.
"""

from typing import Final

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition

BROKERS: Final = "/brokers"
STATE: Final = f"{BROKERS}/state"
IDS: Final = f"{BROKERS}/ids"
TOPICS: Final = f"{BROKERS}/topics"
REASSIGNED: Final = f"{BROKERS}/partitions_reassigned"
PRODUCER_IDS: Final = f"{BROKERS}/producer_ids"
CLUSTER: Final = "/cluster"

PARENTS: Final = (CLUSTER, BROKERS, STATE, IDS, TOPICS, REASSIGNED, PRODUCER_IDS)
OF_CONTROLLERS: Final = ("/controller", "/controller_epoch")
"""Where one of these is, the chroot is that of a cluster with a controller."""

_REQUEST: Final = "request-"


def state(broker: BrokerId) -> str:
    """The queue of state change requests for a broker."""
    return f"{STATE}/{broker}"


def request_prefix(broker: BrokerId) -> str:
    """ZooKeeper appends the number."""
    return f"{state(broker)}/{_REQUEST}"


def topic(name: TopicName) -> str:
    return f"{TOPICS}/{name}"


def partition(topic_partition: TopicPartition) -> str:
    return f"{TOPICS}/{topic_partition.topic}/{topic_partition.partition}"


def replicas(topic_partition: TopicPartition) -> str:
    """The AR."""
    return f"{partition(topic_partition)}/replicas"


def leader(topic_partition: TopicPartition) -> str:
    """`broker_id,epoch`; it goes with the leader's session."""
    return f"{partition(topic_partition)}/leader"


def isr(topic_partition: TopicPartition) -> str:
    return f"{partition(topic_partition)}/ISR"


def cur(topic_partition: TopicPartition) -> str:
    """The replicas that are catching up: AR - ISR."""
    return f"{partition(topic_partition)}/CUR"


def epoch(topic_partition: TopicPartition) -> str:
    return f"{partition(topic_partition)}/epoch"


def reassigned_topic(name: TopicName) -> str:
    return f"{REASSIGNED}/{name}"


def reassigned(topic_partition: TopicPartition) -> str:
    """The RAR; empty where the partition is to be deleted."""
    return f"{REASSIGNED}/{topic_partition.topic}/{topic_partition.partition}"


def topic_partition_of(path: str, parent: str) -> TopicPartition | None:
    """The partition that a path below `TOPICS` or `REASSIGNED` is of; None where it is of none."""
    parts = path.removeprefix(f"{parent}/").split("/")
    if len(parts) < 2 or not parts[1].isascii() or not parts[1].isdigit():
        return None
    return TopicPartition(TopicName(parts[0]), PartitionId(int(parts[1])))
