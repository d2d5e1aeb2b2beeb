"""`/kontroller/deleted_topics`: recently deleted topics, oldest first, with their numbers of partitions."""

from collections.abc import Mapping
from typing import Final

import orjson

from controller_core.model.ids import TopicName
from controller_core.model.topics.topic_names import explain_illegal
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import MalformedZnode, describe, field, json_object, require_version

_VERSION: Final = 1


def decode_deleted_topics(data: bytes) -> dict[TopicName, int]:
    """Return each topic's number of partitions, in the order of deletion. Raises `MalformedZnode` and
    `LaterVersion`."""
    path = paths.DELETED_TOPICS
    json = json_object(path, data)
    require_version(path, json, _VERSION)
    topics: dict[TopicName, int] = {}
    for entry in field(path, json, "topics", list, []):
        if type(entry) is not dict:
            raise MalformedZnode(path, f'"topics" must be a list of objects, found {describe(entry)}')
        count = field(path, entry, "partitions", int)
        if not 0 <= count < 1_000_000:
            raise MalformedZnode(path, f'"partitions" is not a valid number of partitions: {count}')
        name = field(path, entry, "name", str)
        if explain_illegal(name) is not None:
            raise MalformedZnode(path, f'"name" is not a valid topic name: {describe(name)}')
        topics[TopicName(name)] = count
    return topics


def encode_deleted_topics(topics: Mapping[TopicName, int]) -> bytes:
    entries = [{"name": topic, "partitions": count} for topic, count in topics.items()]
    return orjson.dumps({"version": _VERSION, "topics": entries})
