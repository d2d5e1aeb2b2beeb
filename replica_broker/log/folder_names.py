"""What the folder of a log is called, and what it is called while it is removed: as Kafka calls them."""

import re
from typing import Final
from uuid import uuid4

from controller_core.model.ids import PartitionId, TopicName, TopicPartition
from replica_broker.log.record_batches import INT32_MAX

DELETE_SUFFIX: Final = "-delete"
_LONGEST_NAME: Final = 255
_FOLDER: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")


def is_log_folder(name: str) -> bool:
    match = _FOLDER.fullmatch(name)
    return match is not None and int(match[2]) <= INT32_MAX


def topic_partition_of(name: str) -> TopicPartition:
    """The partition whose log has a folder of that name. Raises `ValueError`."""
    match = _FOLDER.fullmatch(name)
    if match is None or int(match[2]) > INT32_MAX:
        raise ValueError(f"a log's folder is called TOPIC-PARTITION, not {name!r}")
    return TopicPartition(TopicName(match[1]), PartitionId(int(match[2])))


def name_to_delete(topic_partition: TopicPartition) -> str:
    """A name that nothing else has; a long topic loses its end."""
    suffix = f"-{topic_partition.partition}.{uuid4().hex}{DELETE_SUFFIX}"
    return topic_partition.topic[: _LONGEST_NAME - len(suffix)] + suffix
