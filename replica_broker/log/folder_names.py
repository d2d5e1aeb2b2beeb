"""The folder names of logs, and of logs that are being deleted, in Kafka's format."""

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
    """Return the partition of a log's folder. Raises `ValueError`."""
    match = _FOLDER.fullmatch(name)
    if match is None or int(match[2]) > INT32_MAX:
        raise ValueError(f"a log's folder must have a name of the form TOPIC-PARTITION, found {name!r}")
    return TopicPartition(TopicName(match[1]), PartitionId(int(match[2])))


def name_to_delete(topic_partition: TopicPartition) -> str:
    """Return a unique name for the folder of a deleted log. A long topic name loses its end."""
    suffix = f"-{topic_partition.partition}.{uuid4().hex}{DELETE_SUFFIX}"
    return topic_partition.topic[: _LONGEST_NAME - len(suffix)] + suffix
