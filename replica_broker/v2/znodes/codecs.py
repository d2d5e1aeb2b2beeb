"""The formats of the znodes of design v2: brokers as `1,2,3`, a leader as `broker_id,epoch`, requests as JSON.

The seed leaves the content of a topic's znode open. Here it is the topic id, which brokers of this inter-broker version
need for fetches, and which distinguishes the log of a deleted topic from its successor's.
"""

import json
import re
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from uuid import UUID

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.model.topics.topic_names import explain_illegal
from controller_core.zk.codecs import MalformedZnode
from controller_core.zk.codecs.json_fields import INT32_MAX, describe, integer, json_object

StateChange = Literal["start-replica", "close-replica"]
_BROKERS: Final = re.compile(r"([0-9]{1,10}(,[0-9]{1,10})*)?")
_LEADER: Final = re.compile(r"([0-9]{1,10}),([0-9]{1,10})")


class Leader(NamedTuple):
    """A partition's leader and its epoch."""

    broker_id: BrokerId
    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChangeRequest:
    """A request of a leader, or of the admin (epoch -1), to a replica."""

    change: StateChange
    topic_partition: TopicPartition
    epoch: LeaderEpoch


def encode_brokers(brokers: tuple[BrokerId, ...]) -> bytes:
    return ",".join(map(str, brokers)).encode()


def decode_brokers(path: str, data: bytes) -> tuple[BrokerId, ...]:
    """Parse a list of brokers. Raises `MalformedZnode`."""
    text = data.decode(errors="replace")
    numbers = [int(part) for part in text.split(",") if part] if _BROKERS.fullmatch(text) else [-1]
    if not all(0 <= number <= INT32_MAX for number in numbers):
        raise MalformedZnode(path, f"it is not a list of brokers such as 1,2,3: {describe(text)}")
    return tuple(map(BrokerId, numbers))


def encode_leader(leader: Leader) -> bytes:
    return f"{leader.broker_id},{leader.epoch}".encode()


def decode_leader(path: str, data: bytes) -> Leader:
    """Parse a leader. Raises `MalformedZnode`."""
    text = data.decode(errors="replace")
    match = _LEADER.fullmatch(text)
    broker, epoch = (int(match[1]), int(match[2])) if match else (-1, -1)
    if not (0 <= broker <= INT32_MAX and 0 <= epoch <= INT32_MAX):
        raise MalformedZnode(path, f"it is not broker_id,epoch: {describe(text)}")
    return Leader(BrokerId(broker), LeaderEpoch(epoch))


def encode_topic_id(topic_id: TopicId) -> bytes:
    return str(topic_id).encode()


def decode_topic_id(path: str, data: bytes) -> TopicId:
    """Parse a topic id. Raises `MalformedZnode`."""
    try:
        return TopicId(UUID(data.decode()))
    except ValueError as error:
        raise MalformedZnode(path, f"it is not a topic id: {error}") from error


def encode_request(request: StateChangeRequest) -> bytes:
    topic, partition = request.topic_partition
    said = {"change": request.change, "topic": topic, "partition": partition, "epoch": request.epoch}
    return json.dumps(said).encode()


def decode_request(path: str, data: bytes) -> StateChangeRequest:
    """Parse a state change request. Raises `MalformedZnode`."""
    said = json_object(path, data)
    change, topic = said.get("change"), said.get("topic")
    if change not in ("start-replica", "close-replica"):
        raise MalformedZnode(path, f"it is not a state change request: the change is {describe(change)}")
    if not isinstance(topic, str) or explain_illegal(topic):
        raise MalformedZnode(path, f"it is not a state change request: the topic is {describe(topic)}")
    partition = PartitionId(integer(path, said, "partition"))
    epoch = LeaderEpoch(integer(path, said, "epoch", at_least=-1))
    return StateChangeRequest(change=change, topic_partition=TopicPartition(TopicName(topic), partition), epoch=epoch)
