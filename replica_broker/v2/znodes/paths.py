"""The paths of the znodes of design v2. Names are Kafka's but contents are not, so v2 needs its own chroot.

The seed does not place the ISR and the CUR; they are beside the leader. It does not define epochs either: the version
of the counter `epoch` is the epoch of the last leader.
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
"""If one of these exists, the chroot belongs to a cluster with a controller."""

_REQUEST: Final = "request-"


def state(broker: BrokerId) -> str:
    """Return the path of a broker's queue of state change requests."""
    return f"{STATE}/{broker}"


def request_prefix(broker: BrokerId) -> str:
    """Return the prefix of sequential requests."""
    return f"{state(broker)}/{_REQUEST}"


def topic(name: TopicName) -> str:
    return f"{TOPICS}/{name}"


def partition(topic_partition: TopicPartition) -> str:
    return f"{TOPICS}/{topic_partition.topic}/{topic_partition.partition}"


def replicas(topic_partition: TopicPartition) -> str:
    """Return the path of the AR."""
    return f"{partition(topic_partition)}/replicas"


def leader(topic_partition: TopicPartition) -> str:
    """Return the path of the leader, `broker_id,epoch`, which is ephemeral."""
    return f"{partition(topic_partition)}/leader"


def isr(topic_partition: TopicPartition) -> str:
    return f"{partition(topic_partition)}/ISR"


def cur(topic_partition: TopicPartition) -> str:
    """Return the path of the replicas that are catching up: AR - ISR."""
    return f"{partition(topic_partition)}/CUR"


def epoch(topic_partition: TopicPartition) -> str:
    return f"{partition(topic_partition)}/epoch"


def topic_reassignment(name: TopicName) -> str:
    return f"{REASSIGNED}/{name}"


def reassignment(topic_partition: TopicPartition) -> str:
    """Return the path of the RAR, which is empty for a deletion."""
    return f"{REASSIGNED}/{topic_partition.topic}/{topic_partition.partition}"


def topic_partition_of(path: str, parent: str) -> TopicPartition | None:
    """Return the partition of a path below `TOPICS` or `REASSIGNED`, or None if it has none."""
    parts = path.removeprefix(f"{parent}/").split("/")
    if len(parts) < 2 or not parts[1].isascii() or not parts[1].isdigit():
        return None
    return TopicPartition(TopicName(parts[0]), PartitionId(int(parts[1])))
