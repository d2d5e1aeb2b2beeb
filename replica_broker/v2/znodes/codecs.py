"""What stands in the znodes of design v2: lists of brokers as `1,2,3`, a leader as `broker_id,epoch`, requests as JSON.

The seed leaves the data of a topic's znode open. It is the topic's id: brokers of this inter-broker version name topics
by their ids when they fetch, and a log of a deleted topic is told from one of its successor by it.
"""

import json
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple
from uuid import UUID

from controller_core.model.ids import BrokerId, LeaderEpoch, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.zk.codecs import MalformedZnode

StateChange = Literal["start-replica", "close-replica"]
_CHANGES: Final[dict[str, StateChange]] = {"start-replica": "start-replica", "close-replica": "close-replica"}


class Leader(NamedTuple):
    """Who leads, in which epoch."""

    broker_id: BrokerId
    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChangeRequest:
    """What a leader, or the admin (epoch -1), asks of a replica."""

    change: StateChange
    topic_partition: TopicPartition
    epoch: LeaderEpoch


def encode_brokers(brokers: tuple[BrokerId, ...]) -> bytes:
    return ",".join(map(str, brokers)).encode()


def decode_brokers(path: str, data: bytes) -> tuple[BrokerId, ...]:
    """Raises `MalformedZnode`."""
    try:
        return tuple(BrokerId(int(part)) for part in data.decode().split(",") if part)
    except ValueError as error:
        raise MalformedZnode(path, f"it is not a list of brokers such as 1,2,3: {error}") from error


def encode_leader(leader: Leader) -> bytes:
    return f"{leader.broker_id},{leader.epoch}".encode()


def decode_leader(path: str, data: bytes) -> Leader:
    """Raises `MalformedZnode`."""
    try:
        broker, epoch = data.decode().split(",")
        return Leader(BrokerId(int(broker)), LeaderEpoch(int(epoch)))
    except ValueError as error:
        raise MalformedZnode(path, f"it is not broker_id,epoch: {error}") from error


def encode_topic_id(topic_id: TopicId) -> bytes:
    return str(topic_id).encode()


def decode_topic_id(path: str, data: bytes) -> TopicId:
    """Raises `MalformedZnode`."""
    try:
        return TopicId(UUID(data.decode()))
    except ValueError as error:
        raise MalformedZnode(path, f"it is not a topic's id: {error}") from error


def encode_request(request: StateChangeRequest) -> bytes:
    topic, partition = request.topic_partition
    said = {"change": request.change, "topic": topic, "partition": partition, "epoch": request.epoch}
    return json.dumps(said).encode()


def decode_request(path: str, data: bytes) -> StateChangeRequest:
    """Raises `MalformedZnode`."""
    try:
        said = json.loads(data)
        return StateChangeRequest(
            change=_CHANGES[said["change"]],
            topic_partition=TopicPartition(TopicName(str(said["topic"])), PartitionId(int(said["partition"]))),
            epoch=LeaderEpoch(int(said["epoch"])),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise MalformedZnode(path, f"it is no state change request: {error}") from error
