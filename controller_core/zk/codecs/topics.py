"""Topics and the leadership of their partitions: `/brokers/topics/T` and the state znodes below it.

There is one state znode per partition, up to hundreds of thousands, and a takeover reads them all. So
`decode_partition_state` is written for speed, and looks for what is wrong only after something was; and what says the same
is one object, because a cluster has many partitions and few different ISRs and assignments.

A topic whose znode makes sense but for some of its partitions is served without these: the others, which may be thousands,
would else lose their leaders one by one with nobody to elect new ones. What the znode says of the bad ones is kept beside
(`TopicAssignment.unusable`) and written back by every rewrite, so that a person may still mend it: a reassignment of one
partition must not be the end of another. Where no partition can be told from the others (no JSON, no object of partitions,
an id that is none) the topic is bad as a whole. A broker that starts serves clients the topic without its bad partitions,
until they are mended.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

import orjson

from controller_core.model.ids import (
    NO_LEADER,
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
    UnusableEntry,
)
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import (
    INT32_MAX,
    MalformedZnode,
    broker_ids,
    described,
    field,
    integer,
    json_object,
)
from controller_core.zk.session import ZkNode, ZkVersion

_TOPIC_VERSION: Final = 3
_STATE_VERSION: Final = 1
_RECOVERING: Final = f',"leader_recovery_state":{int(LeaderRecoveryState.RECOVERING)}'
_ORIGINS: Final = "kontroller_origin_replicas"
_PARTITION_FIELDS: Final = ("partitions", "adding_replicas", "removing_replicas", _ORIGINS)
_SHOWN: Final = 5
_MOST_STATE_BYTES: Final = 65_536
"""An ISR of thousands of brokers takes less."""
_RECOVERY_STATES: Final = {state.value: state for state in LeaderRecoveryState}
_SHARED: Final = 1 << 14
"""How many different values are kept to be shared: enough for the orders of three replicas on 25 brokers."""
_Json: TypeAlias = dict[str, Any]
_MAX_FOLDER_NAME: Final = 255
"""A broker that cannot make the folder of a log, `TOPIC-NUMBER`, takes the log directory for failed, and may end itself."""
_TOPIC_ID: Final = re.compile(r"[0-9A-Za-z_-]{22}")
_NO_ID: Final = UUID(int=0)
"""What stands for no topic id on the wire."""
MAX_LEADER_EPOCH: Final = INT32_MAX - (1 << 20)
"""A leader epoch so near to its end was never reached by elections, and every decision must have room to raise it."""
_STATE_BOUNDS: Final = (
    ("leader", NO_LEADER, INT32_MAX), ("leader_epoch", 0, MAX_LEADER_EPOCH), ("controller_epoch", 0, INT32_MAX),
)  # fmt: skip


def decode_topic(topic: TopicName, data: bytes) -> TopicAssignment:
    """An assignment of any version: `topic_id` and the running reassignments may be absent.

    Raises `MalformedZnode` for a topic as a whole; single entries that make no sense are left out and kept beside."""
    path = paths.topic(topic)
    json = json_object(path, data)
    partitions = field(path, json, "partitions", dict)
    adding = field(path, json, "adding_replicas", dict, {})
    removing = field(path, json, "removing_replicas", dict, {})
    origins = field(path, json, _ORIGINS, dict, {})
    topic_id = decode_topic_id(path, field(path, json, "topic_id", str, None))
    usable: dict[PartitionId, ReplicaAssignment] = {}
    unusable: list[UnusableEntry] = []
    most_digits = _MAX_FOLDER_NAME - len(topic) - 1
    for key in partitions:
        number, at_rest = _number(key), _at_rest(partitions, adding, removing, origins, key)
        if number is not None and at_rest is not None and len(key) <= most_digits:
            usable[number] = at_rest
            continue
        try:
            number = _partition_id(path, key, most_digits)
            replicas = _replicas(path, f"partitions.{key}", partitions[key])
            usable[number] = ReplicaAssignment(
                replicas=replicas,
                adding=_among(replicas, _replicas(path, f"adding_replicas.{key}", adding.get(key, []))),
                removing=_among(replicas, _replicas(path, f"removing_replicas.{key}", removing.get(key, []))),
                origin_order=_replicas(path, f"{_ORIGINS}.{key}", origins.get(key, [])),
            )
        except MalformedZnode as error:
            unusable.append(_unusable(key, error, json))
    return TopicAssignment(topic_id=topic_id, partitions=dict(sorted(usable.items())), unusable=tuple(unusable))


def decode_whole_topic(topic: TopicName, data: bytes) -> TopicAssignment:
    """As `decode_topic`, for whoever cannot make do with some of the partitions: one bad entry is `MalformedZnode`."""
    content = decode_topic(topic, data)
    if content.unusable:
        raise MalformedZnode(paths.topic(topic), "; ".join(entry.reason for entry in content.unusable[:_SHOWN]))
    return content


def _unusable(key: str, error: MalformedZnode, json: _Json) -> UnusableEntry:
    """An entry that can be kept. Raises the error where it could not be written back."""
    said = {name: json[name][key] for name in _PARTITION_FIELDS if key in (json.get(name) or ())}
    try:
        orjson.dumps(said)
    except TypeError:  # it is nested deeper than can be written
        raise error from None
    return UnusableEntry(key=key, reason=error.reason, said=said)


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

    Where the order of a reassignment's origin would be lost it is recorded in a field of our own, which Kafka ignores.
    Entries that made no sense follow as they were, but for numbers beyond 64 bits, which JSON does not keep."""
    partitions = sorted(assignment.partitions.items())
    moving = [(number, p) for number, p in partitions if p.adding or p.removing or p.origin_order]
    fields: dict[str, dict[int | str, object]] = {
        "partitions": {number: partition.replicas for number, partition in partitions},
        "adding_replicas": {number: p.adding for number, p in moving if p.adding},
        "removing_replicas": {number: p.removing for number, p in moving if p.removing},
        _ORIGINS: {number: p.origin_order for number, p in moving if p.origin_order},
    }
    for entry in assignment.unusable:
        if _number(entry.key) not in assignment.partitions:
            for name, value in entry.said.items():
                fields[name][entry.key] = value
    if not fields[_ORIGINS]:
        del fields[_ORIGINS]
    json: dict[str, object] = {"version": _TOPIC_VERSION, **fields}
    if assignment.topic_id is not None:
        json["topic_id"] = encode_topic_id(assignment.topic_id)
    return orjson.dumps(json, option=orjson.OPT_NON_STR_KEYS)


def topic_bytes(partitions: Mapping[PartitionId, ReplicaAssignment]) -> int:
    """What `encode_topic` makes of the partitions, or some bytes more."""
    return _BESIDE_PARTITIONS_BYTES + sum(
        partition_bytes(number, partition) for number, partition in partitions.items()
    )


def partition_bytes(number: PartitionId, partition: ReplicaAssignment) -> int:
    """What a partition takes in its topic's znode, or some bytes more."""
    key_bytes = len(f'"{number}":[],')
    lists = (partition.replicas, partition.adding, partition.removing, partition.origin_order)
    return sum(key_bytes + _integers_bytes(brokers) for at, brokers in enumerate(lists) if brokers or at == 0)


@lru_cache(maxsize=_SHARED)
def _integers_bytes(numbers: tuple[int, ...]) -> int:
    return max(0, sum(len(str(number)) + 1 for number in numbers) - 1)


def decode_partition_state(topic_partition: TopicPartition, node: ZkNode) -> PartitionState:
    """Raises `MalformedZnode`, also where it is so large that it could not be written again."""
    if len(node.data) > _MOST_STATE_BYTES:
        path, size_bytes = paths.partition_state(topic_partition), len(node.data)
        raise MalformedZnode(path, f"it has {size_bytes} bytes, and a state has at most {_MOST_STATE_BYTES}")
    try:
        return _shared_state(node.data, node.version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _state_error(paths.partition_state(topic_partition), node.data) from error


@lru_cache(maxsize=_SHARED)
def _shared_state(data: bytes, version: ZkVersion) -> PartitionState:
    """A state, one for all partitions whose znodes say the same. Raises what reading it raises."""
    json = orjson.loads(data)
    leader, leader_epoch, controller_epoch = json["leader"], json["leader_epoch"], json["controller_epoch"]
    isr = json["isr"]
    _require_integers(leader, leader_epoch, controller_epoch)
    if type(isr) is not list or not _is_in_range(leader, leader_epoch, controller_epoch):
        raise ValueError
    return PartitionState(
        leader_and_isr=LeaderAndIsr(
            leader=leader,
            isr=_shared_brokers(*isr),
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


def _is_in_range(leader: int, leader_epoch: int, controller_epoch: int) -> bool:
    return (
        NO_LEADER <= leader <= INT32_MAX
        and 0 <= leader_epoch <= MAX_LEADER_EPOCH
        and 0 <= controller_epoch <= INT32_MAX
    )


@lru_cache(maxsize=_SHARED, typed=True)
def _shared_brokers(*brokers: int) -> tuple[BrokerId, ...]:
    """The brokers as one tuple for all partitions that have the same. Raises `TypeError` and `ValueError`."""
    _require_integers(*brokers)
    if brokers and not 0 <= min(brokers) <= max(brokers) <= INT32_MAX:
        raise ValueError
    return cast("tuple[BrokerId, ...]", brokers)


@lru_cache(maxsize=_SHARED, typed=True)
def _shared_assignment(*replicas: int) -> ReplicaAssignment:
    """An assignment at rest, one for all partitions that have the same. Raises `TypeError` and `ValueError`."""
    brokers = _shared_brokers(*replicas)
    if len(set(brokers)) != len(brokers):
        raise ValueError
    return ReplicaAssignment(replicas=brokers)


def _state_error(path: str, data: bytes) -> MalformedZnode:
    """What is wrong with a state, found by reading it once more, field by field."""
    try:
        json = json_object(path, data)
        for name, least, most in _STATE_BOUNDS:
            field(path, json, name, int)
            integer(path, json, name, at_least=least, at_most=most)
        broker_ids(path, "isr", field(path, json, "isr", list))
    except MalformedZnode as error:
        return error
    recovery = described(json.get("leader_recovery_state"))
    return MalformedZnode(path, f'"leader_recovery_state" must be 0 or 1, found {recovery}')


def encode_topic_id(topic_id: TopicId) -> str:
    """A topic's id as Kafka writes it: 22 characters of base64url."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def decode_topic_id(path: str, text: str | None) -> TopicId | None:
    """A topic's id as Kafka writes it; the one that stands for none is none. Raises `MalformedZnode`."""
    if text is None:
        return None
    if not _TOPIC_ID.fullmatch(text):
        raise MalformedZnode(path, f'"topic_id" must be 22 characters of base64url (a UUID), found {described(text)}')
    topic_id = UUID(bytes=urlsafe_b64decode(f"{text}=="))
    return None if topic_id == _NO_ID else TopicId(topic_id)


def _among(replicas: tuple[BrokerId, ...], moving: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
    """What comes or goes is assigned meanwhile. Whatever is not would be begun and belong to nobody, or be waited for in
    vain: it is neither coming nor going."""
    return tuple(broker for broker in moving if broker in replicas)


def _partition_id(path: str, key: str, most_digits: int) -> PartitionId:
    number = _number(key)
    if number is not None and len(key) > most_digits:
        raise MalformedZnode(path, f"the number of partition {key} is too long for the name of its folder on a broker")
    if number is None:
        raise MalformedZnode(path, f'"partitions" must have partition numbers as its keys, found {described(key)}')
    return number


@lru_cache(maxsize=_SHARED)
def _number(key: str) -> PartitionId | None:
    return paths.partition_number(key)


def _replicas(path: str, name: str, value: Any) -> tuple[BrokerId, ...]:
    replicas = broker_ids(path, name, value)
    if len(set(replicas)) != len(replicas):
        raise MalformedZnode(path, f'"{name}" names a broker twice: {described(replicas)}; each may hold one replica')
    return tuple(BrokerId(replica) for replica in replicas)


_BESIDE_PARTITIONS_BYTES: Final = len(
    encode_topic(TopicAssignment(topic_id=TopicId(UUID(int=0)), partitions={}))
) + len(f'"{_ORIGINS}":{{}},')
