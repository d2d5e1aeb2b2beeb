"""Requests that people and tools write below `/admin` as JSON: reassignments, elections, and changes of single
partitions.

One bad entry must not hold up the others, and a znode has no place for an answer. So bad entries are left out, and the
result has the reasons in words. Only data that is not such a document at all raises `MalformedZnode`.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Final

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from controller_core.model.ids import BrokerId, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.model.metadata import PreferredElectionPlan, ReassignmentPlan
from controller_core.model.topics.topic_names import explain_illegal
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import (
    INT32_MAX,
    MalformedZnode,
    broker_ids,
    describe,
    field,
    json_object,
)
from controller_core.zk.codecs.topics import decode_topic_id, encode_topic_id

_VERSION: Final = 1
_SHOWN: Final = 300
_NonNegative = Annotated[int, Field(ge=0, le=INT32_MAX)]

_why_illegal: Final = lru_cache(maxsize=1 << 12)(explain_illegal)
"""Cached, because a plan names few topics, each of them often."""


def _legal(topic: str) -> str:
    reason = _why_illegal(topic)
    if reason is not None:
        raise ValueError(reason[:_SHOWN])
    return topic


class _PartitionEntry(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    topic: Annotated[str, AfterValidator(_legal)]
    partition: _NonNegative

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(TopicName(self.topic), PartitionId(self.partition))


class _ReassignmentEntry(_PartitionEntry):
    replicas: Annotated[list[_NonNegative], Field(min_length=1)]


def decode_reassignment(data: bytes) -> ReassignmentPlan:
    """Decode `/admin/reassign_partitions`. If a partition has several entries the first one counts. Raises
    `MalformedZnode`."""
    partitions: dict[TopicPartition, tuple[BrokerId, ...]] = {}

    def accept(json: Any) -> str | None:
        # The fast path. Anything unusual goes through the model below, which finds the reason.
        if _is_plain(json) and (topic_partition := TopicPartition(json["topic"], json["partition"])) not in partitions:
            partitions[topic_partition] = tuple(json["replicas"])
            return None
        entry = _ReassignmentEntry.model_validate(json)
        if len(set(entry.replicas)) != len(entry.replicas):
            return f"replicas: {entry.replicas} names a broker twice; name each broker once"
        if entry.topic_partition in partitions:
            return f"{entry.topic_partition} has an earlier entry; give each partition one entry"
        partitions[entry.topic_partition] = tuple(BrokerId(replica) for replica in entry.replicas)
        return None

    rejected = _collect_rejections(paths.REASSIGN_PARTITIONS, data, accept)
    return ReassignmentPlan(partitions=partitions, rejected=rejected)


def _is_plain(json: Any) -> bool:
    """Return True if an entry is valid, by checks that are cheaper than the model. A plan may have tens of thousands of
    entries and is read repeatedly. For all others, the model says what is wrong."""
    if type(json) is not dict:
        return False
    topic, partition, replicas = json.get("topic"), json.get("partition"), json.get("replicas")
    return (
        type(topic) is str
        and _why_illegal(topic) is None
        and type(partition) is int
        and 0 <= partition <= INT32_MAX
        and type(replicas) is list
        and set(map(type, replicas)) == {int}
        and 0 <= min(replicas) <= max(replicas) <= INT32_MAX
        and len(set(replicas)) == len(replicas)
    )


def encode_reassignment(partitions: Mapping[TopicPartition, Iterable[BrokerId]]) -> bytes:
    return orjson.dumps(
        {
            "version": _VERSION,
            "partitions": [
                {"topic": topic, "partition": partition, "replicas": list(replicas)}
                for (topic, partition), replicas in partitions.items()
            ],
        }
    )


def decode_preferred_election(data: bytes) -> PreferredElectionPlan:
    """Decode `/admin/preferred_replica_election`. Duplicates count once. Raises `MalformedZnode`."""
    partitions: dict[TopicPartition, None] = {}

    def accept(json: Any) -> str | None:
        partitions[_PartitionEntry.model_validate(json).topic_partition] = None
        return None

    rejected = _collect_rejections(paths.PREFERRED_REPLICA_ELECTION, data, accept)
    return PreferredElectionPlan(partitions=tuple(partitions), rejected=rejected)


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode the partitions of a preferred election, or those whose ISR a leader has changed."""
    return orjson.dumps(
        {
            "version": _VERSION,
            "partitions": [{"topic": topic, "partition": partition} for topic, partition in partitions],
        }
    )


def decode_replicas(path: str, data: bytes) -> tuple[BrokerId, ...]:
    """Decode a request to add or reassign one partition: its replicas, preferred first. Raises `MalformedZnode`."""
    replicas = broker_ids(path, "replicas", field(path, json_object(path, data), "replicas", list))
    if not replicas:
        raise MalformedZnode(path, '"replicas" is empty; name at least one broker')
    if len(set(replicas)) != len(replicas):
        raise MalformedZnode(path, f'"replicas" is {describe(replicas)}; name each broker once')
    return tuple(map(BrokerId, replicas))


def encode_replicas(replicas: Iterable[BrokerId]) -> bytes:
    return orjson.dumps({"version": _VERSION, "replicas": list(replicas)})


def decode_partition_removal(path: str, data: bytes) -> TopicId | None:
    """Return the id of the topic whose partition is being removed, or None if the removal has not begun.

    Anybody may write such a request, so other data counts as a request that has not begun.
    """
    try:
        return decode_topic_id(path, field(path, json_object(path, data), "begun_for_topic_id", str, None))
    except MalformedZnode:
        return None


def encode_partition_removal(begun_for: TopicId | None) -> bytes:
    return orjson.dumps({"version": _VERSION, "begun_for_topic_id": begun_for and encode_topic_id(begun_for)})


def _collect_rejections(path: str, data: bytes, accept: Callable[[Any], str | None]) -> tuple[str, ...]:
    """Offer every entry of the document to `accept`. Return the reasons for those that it rejected."""
    reasons = []
    for number, json in enumerate(field(path, json_object(path, data), "partitions", list)):
        try:
            reason = accept(json)
        except ValidationError as error:
            reason = "; ".join(_explain(problem) for problem in error.errors())
        if reason is not None:
            reasons.append(f"entry {number}, {describe(json)}: {reason}")
    return tuple(reasons)


def _explain(problem: Mapping[str, Any]) -> str:
    if problem["type"] == "model_type":
        return "each entry must be an object with its fields"
    place = ".".join(str(part) for part in problem["loc"])
    return f"{place}: {problem['msg']}" if place else problem["msg"]
