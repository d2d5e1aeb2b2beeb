"""Notifications from brokers to the controller through sequential znodes: ISR changes and failed log directories."""

from typing import Final

import orjson

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import MalformedZnode, describe, field, integer, json_object

_VERSION: Final = 1
_LOG_DIR_FAILED: Final = 1


def decode_isr_change(data: bytes) -> tuple[TopicPartition, ...]:
    """Return the partitions whose leaders changed the ISR. Only brokers before 2.7 write this. Raises
    `MalformedZnode`."""
    path = paths.ISR_CHANGE_NOTIFICATION
    changed = []
    for entry in field(path, json_object(path, data), "partitions", list):
        if not isinstance(entry, dict):
            raise MalformedZnode(path, f'"partitions" must hold objects, found {describe(entry)}')
        topic = TopicName(field(path, entry, "topic", str))
        changed.append(TopicPartition(topic, PartitionId(integer(path, entry, "partition"))))
    return tuple(changed)


def decode_log_dir_event(data: bytes) -> BrokerId:
    """Return the broker that lost a log directory. Raises `MalformedZnode`."""
    path = paths.LOG_DIR_EVENT_NOTIFICATION
    return BrokerId(integer(path, json_object(path, data), "broker"))


def encode_log_dir_event(broker_id: BrokerId) -> bytes:
    return orjson.dumps({"version": _VERSION, "broker": broker_id, "event": _LOG_DIR_FAILED})
