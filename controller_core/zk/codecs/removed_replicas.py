"""The list of removed replicas: one znode below `/kontroller/removed_replicas` for each, with the id of its topic.

A topic that is deleted and created again under the same name has another id; only the id tells the log that nobody owns
from the one that its successor has there now.
"""

from typing import Final

import orjson

from controller_core.model.ids import PartitionReplica, TopicId
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import field, json_object, require_version
from controller_core.zk.codecs.topics import decode_topic_id, encode_topic_id

_VERSION: Final = 1


def decode_removed_replica(replica: PartitionReplica, data: bytes) -> TopicId | None:
    """The id that the replica's topic had, None where it had none. Raises `MalformedZnode` and `LaterVersion`."""
    path = paths.removed_replica(replica)
    json = json_object(path, data)
    require_version(path, json, _VERSION)
    return decode_topic_id(path, field(path, json, "topic_id", str, None))


def encode_removed_replica(topic_id: TopicId | None) -> bytes:
    return orjson.dumps({"version": _VERSION, "topic_id": None if topic_id is None else encode_topic_id(topic_id)})
