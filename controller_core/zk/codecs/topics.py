"""Topics and the leadership of their partitions: `/brokers/topics/T` and the state znodes below it.

There is one state znode per partition, up to hundreds of thousands, and a takeover reads them all. So
`decode_partition_state` is written for speed, and looks for what is wrong only after something was; and what says the same
is one object, because a cluster has many partitions and few different ISRs and assignments.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

import orjson

from controller_core.model.ids import (
    BrokerId,
    ControllerEpoch,
    PartitionEpoch,
    PartitionId,
    TopicId,
    TopicName,
    TopicPartition,
)
from controller_core.model.metadata import (
    LeaderAndIsr,
    LeaderRecoveryState,
    PartitionState,
    ReplicaAssignment,
    TopicAssignment,
)
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import MalformedZnode, field, integer, integers, json_object
from controller_core.zk.session import ZkNode, ZkVersion

_TOPIC_VERSION: Final = 3
_STATE_VERSION: Final = 1
_RECOVERING: Final = f',"leader_recovery_state":{int(LeaderRecoveryState.RECOVERING)}'
_ORIGINS: Final = "kontroller_origin_replicas"
_RECOVERY_STATES: Final = {state.value: state for state in LeaderRecoveryState}
_SHARED: Final = 1 << 14
"""How many different values are kept to be shared: enough for the orders of three replicas on 25 brokers."""
_Json: TypeAlias = dict[str, Any]
_TOPIC_ID: Final = re.compile(r"[0-9A-Za-z_-]{22}")


def decode_topic(topic: TopicName, data: bytes) -> TopicAssignment:
    """An assignment of any version: `topic_id` and the running reassignments may be absent. Raises `MalformedZnode`."""
    path = paths.topic(topic)
    json = json_object(path, data)
    partitions = field(path, json, "partitions", dict)
    adding = field(path, json, "adding_replicas", dict, {})
    removing = field(path, json, "removing_replicas", dict, {})
    origins = field(path, json, _ORIGINS, dict, {})
    keys = {_partition_id(path, key): key for key in partitions}
    return TopicAssignment(
        topic_id=decode_topic_id(path, field(path, json, "topic_id", str, None)),
        partitions={
            number: _at_rest(partitions, adding, removing, origins, key)
            or ReplicaAssignment(
                replicas=_replicas(path, f"partitions.{key}", partitions[key]),
                adding=_replicas(path, f"adding_replicas.{key}", adding.get(key, [])),
                removing=_replicas(path, f"removing_replicas.{key}", removing.get(key, [])),
                origin_order=_replicas(path, f"{_ORIGINS}.{key}", origins.get(key, [])),
            )
            for number, key in sorted(keys.items())
        },
    )


def _at_rest(partitions: _Json, adding: _Json, removing: _Json, origins: _Json, key: str) -> ReplicaAssignment | None:
    """The assignment of a partition that is not being reassigned; None where it is, or makes no sense."""
    replicas = partitions[key]
    if key in adding or key in removing or key in origins or type(replicas) is not list:
        return None
    try:
        return _shared_assignment(*replicas)
    except (TypeError, ValueError):
        return None


def encode_topic(assignment: TopicAssignment) -> bytes:
    """What Kafka 3.9 writes: partitions in numeric order, and only those being reassigned under adding and removing.

    Where the order of a reassignment's origin would be lost it is noted in a field of our own, which Kafka ignores."""
    partitions = dict(sorted(assignment.partitions.items()))
    json: dict[str, object] = {
        "version": _TOPIC_VERSION,
        "partitions": {str(number): partition.replicas for number, partition in partitions.items()},
        "adding_replicas": _only_filled({number: p.adding for number, p in partitions.items()}),
        "removing_replicas": _only_filled({number: p.removing for number, p in partitions.items()}),
    }
    if origins := _only_filled({number: p.origin_order for number, p in partitions.items()}):
        json[_ORIGINS] = origins
    if assignment.topic_id is not None:
        json["topic_id"] = encode_topic_id(assignment.topic_id)
    return orjson.dumps(json)


def decode_partition_state(topic_partition: TopicPartition, node: ZkNode) -> PartitionState:
    """Raises `MalformedZnode`."""
    try:
        return _shared_state(node.data, node.version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _state_error(paths.partition_state(topic_partition), node.data) from error


@lru_cache(maxsize=_SHARED)
def _shared_state(data: bytes, version: ZkVersion) -> PartitionState:
    """A state, one for all partitions whose znodes say the same. Raises what reading it raises."""
    json = orjson.loads(data)
    leader, leader_epoch, controller_epoch = json["leader"], json["leader_epoch"], json["controller_epoch"]
    _require_integers(leader, leader_epoch, controller_epoch)
    return PartitionState(
        leader_and_isr=LeaderAndIsr(
            leader=leader,
            isr=_shared_brokers(*json["isr"]),
            leader_epoch=leader_epoch,
            leader_recovery_state=_RECOVERY_STATES[json.get("leader_recovery_state", 0)],
        ),
        controller_epoch=controller_epoch,
        partition_epoch=PartitionEpoch(version),
    )


@lru_cache(maxsize=_SHARED)
def encode_partition_state(leader_and_isr: LeaderAndIsr, controller_epoch: ControllerEpoch) -> bytes:
    """What Kafka 3.9 writes; the recovery state stands there only while the leader is recovering.

    A broker's death writes tens of thousands of these, and few different ones: one format, and not a writer of any JSON."""
    isr = ",".join(map(str, leader_and_isr.isr))
    recovery = leader_and_isr.leader_recovery_state
    return (
        f'{{"version":{_STATE_VERSION},"leader":{leader_and_isr.leader},"leader_epoch":{leader_and_isr.leader_epoch},'
        f'"controller_epoch":{controller_epoch},"isr":[{isr}]'
        f"{_RECOVERING if recovery is not LeaderRecoveryState.RECOVERED else ''}}}"
    ).encode()


def _require_integers(*values: object) -> None:
    for value in values:
        if type(value) is not int:
            raise TypeError


@lru_cache(maxsize=_SHARED, typed=True)
def _shared_brokers(*brokers: object) -> tuple[BrokerId, ...]:
    """The brokers as one tuple for all partitions that have the same. Raises `TypeError` where one is no whole number."""
    _require_integers(*brokers)
    return cast("tuple[BrokerId, ...]", brokers)


@lru_cache(maxsize=_SHARED, typed=True)
def _shared_assignment(*replicas: object) -> ReplicaAssignment:
    """An assignment at rest, one for all partitions that have the same. Raises `TypeError` and `ValueError`."""
    brokers = _shared_brokers(*replicas)
    if len(set(brokers)) != len(brokers):
        raise ValueError
    return ReplicaAssignment(replicas=brokers)


def _state_error(path: str, data: bytes) -> MalformedZnode:
    """What is wrong with a state, found by reading it once more, field by field."""
    try:
        json = json_object(path, data)
        for name in ("leader", "leader_epoch", "controller_epoch"):
            field(path, json, name, int)
        integers(path, "isr", field(path, json, "isr", list))
        recovery = integer(path, json, "leader_recovery_state")
    except MalformedZnode as error:
        return error
    return MalformedZnode(path, f'"leader_recovery_state" must be 0 or 1, found {recovery}')


def encode_topic_id(topic_id: TopicId) -> str:
    """A topic's id as Kafka writes it: 22 characters of base64url."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def decode_topic_id(path: str, text: str | None) -> TopicId | None:
    """A topic's id as Kafka writes it. Raises `MalformedZnode`."""
    if text is None:
        return None
    if not _TOPIC_ID.fullmatch(text):
        raise MalformedZnode(path, f'"topic_id" must be 22 characters of base64url (a UUID), found {text!r}')
    return TopicId(UUID(bytes=urlsafe_b64decode(f"{text}==")))


def _partition_id(path: str, key: str) -> PartitionId:
    number = _number(key)
    if number is None:
        raise MalformedZnode(path, f'"partitions" must have partition numbers as its keys, found {key!r}')
    return number


@lru_cache(maxsize=_SHARED)
def _number(key: str) -> PartitionId | None:
    return PartitionId(int(key)) if key.isascii() and key.isdecimal() else None


def _replicas(path: str, name: str, value: Any) -> tuple[BrokerId, ...]:
    replicas = integers(path, name, value)
    if len(set(replicas)) != len(replicas):
        raise MalformedZnode(path, f'"{name}" names a broker twice: {list(replicas)}; each may hold one replica')
    return tuple(BrokerId(replica) for replica in replicas)


def _only_filled(replicas: Mapping[PartitionId, tuple[BrokerId, ...]]) -> dict[str, tuple[BrokerId, ...]]:
    return {str(number): brokers for number, brokers in replicas.items() if brokers}
