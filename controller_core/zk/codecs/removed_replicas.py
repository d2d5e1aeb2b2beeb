"""The list of removed replicas: one znode below `/kontroller/removed_replicas` for each, with the topic id.

A topic that is deleted and created again has the same name and another id. Only the id distinguishes the orphaned log
of the old topic from a log of the new one.
"""

from typing import Final

import orjson

from controller_core.model.ids import PartitionReplica, TopicId
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import field, json_object, require_version
from controller_core.zk.codecs.topics import decode_topic_id, encode_topic_id

_VERSION: Final = 1


def decode_removed_replica(replica: PartitionReplica, data: bytes) -> TopicId | None:
    """Return the id of the replica's topic, or None if it had none. Raises `MalformedZnode` and `LaterVersion`."""
    path = paths.replica_removal(replica)
    json = json_object(path, data)
    require_version(path, json, _VERSION)
    return decode_topic_id(path, field(path, json, "topic_id", str, None))


def encode_removed_replica(topic_id: TopicId | None) -> bytes:
    return orjson.dumps({"version": _VERSION, "topic_id": None if topic_id is None else encode_topic_id(topic_id)})
