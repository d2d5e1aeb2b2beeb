"""Topics and the leadership of their partitions: `/brokers/topics/T` and the state znodes below it.

A failover reads the state znode of every partition, up to hundreds of thousands. So `decode_partition_state` is fast,
and looks for the exact error only after a failure. Equal values are shared objects, because a cluster has many
partitions and few different ISRs and assignments.

A topic with some bad partitions is served without them; otherwise its other partitions could no longer elect leaders.
`TopicAssignment.unusable` keeps the bad entries, and every rewrite writes them back, so that a person can still mend
them. If the entries cannot be told apart (no JSON, no object of partitions, a bad id), the whole topic is malformed.
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
    describe,
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
"""Enough for an ISR of thousands of brokers."""
_RECOVERY_STATES: Final = {state.value: state for state in LeaderRecoveryState}
_SHARED: Final = 1 << 14
"""The number of distinct values that are shared: enough for all orders of three replicas on 25 brokers."""
_Json: TypeAlias = dict[str, Any]
_MAX_FOLDER_NAME: Final = 255
"""The longest folder name `TOPIC-NUMBER`. A broker that cannot create a log's folder fails the directory, and may shut
down."""
_TOPIC_ID: Final = re.compile(r"[0-9A-Za-z_-]{22}")
_NO_ID: Final = UUID(int=0)
"""The id on the wire for a topic without an id."""
MAX_LEADER_EPOCH: Final = INT32_MAX - (1 << 20)
"""No series of elections comes so near to the largest epoch, and every later decision must be able to raise it."""
_STATE_BOUNDS: Final = (
    ("leader", NO_LEADER, INT32_MAX), ("leader_epoch", 0, MAX_LEADER_EPOCH), ("controller_epoch", 0, INT32_MAX),
)  # fmt: skip


def decode_topic(topic: TopicName, data: bytes) -> TopicAssignment:
    """Decode an assignment of any version: `topic_id` and running reassignments may be absent.

    Raises `MalformedZnode` if the whole topic is unusable. Single bad entries go to `unusable`.
    """
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
        number, at_rest = _number(key), _read_resting_assignment(partitions, adding, removing, origins, key)
        # The fast path: a valid partition that is not being reassigned.
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
    """Decode a topic like `decode_topic`, but raise `MalformedZnode` if a single entry is bad."""
    content = decode_topic(topic, data)
    if content.unusable:
        raise MalformedZnode(paths.topic(topic), "; ".join(entry.reason for entry in content.unusable[:_SHOWN]))
    return content


def _unusable(key: str, error: MalformedZnode, json: _Json) -> UnusableEntry:
    """Return a bad entry to be kept. Raises the error if the entry could not be written back."""
    said = {name: json[name][key] for name in _PARTITION_FIELDS if key in (json.get(name) or ())}
    try:
        orjson.dumps(said)
    except TypeError:  # orjson reads deeper nesting than it writes
        raise error from None
    return UnusableEntry(key=key, reason=error.reason, said=said)


def _read_resting_assignment(
    partitions: _Json, adding: _Json, removing: _Json, origins: _Json, key: str
) -> ReplicaAssignment | None:
    """Return the assignment of a partition at rest. None if it is being reassigned or is malformed."""
    replicas = partitions[key]
    if key in adding or key in removing or key in origins or type(replicas) is not list:
        return None
    try:
        return _share_assignment(*replicas)
    except (TypeError, ValueError):
        return None


def encode_topic(assignment: TopicAssignment) -> bytes:
    """Encode an assignment as Kafka 3.9 does: partitions in numeric order, and only reassigned ones under adding and
    removing.

    If a reassignment would lose the original replica order, a field of Kontroller's own keeps it; Kafka ignores that
    field. Bad entries follow unchanged, except for numbers beyond 64 bits, which JSON does not preserve.
    """
    partitions = sorted(assignment.partitions.items())
    moving = [(number, p) for number, p in partitions if p.adding or p.removing or p.origin_order]
    fields: dict[str, dict[int | str, object]] = {
        "partitions": {number: partition.replicas for number, partition in partitions},
        "adding_replicas": {number: p.adding for number, p in moving if p.adding},
        "removing_replicas": {number: p.removing for number, p in moving if p.removing},
        _ORIGINS: {number: p.origin_order for number, p in moving if p.origin_order},
    }
    for entry in assignment.unusable:
        # A bad entry must not overwrite a partition that was created under its number since.
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
    """Return the size of `encode_topic` for the partitions, or a few bytes more."""
    return _BESIDE_PARTITIONS_BYTES + sum(
        partition_bytes(number, partition) for number, partition in partitions.items()
    )


def partition_bytes(number: PartitionId, partition: ReplicaAssignment) -> int:
    """Return the bytes that a partition takes in its topic's znode, or a few more."""
    key_bytes = len(f'"{number}":[],')
    lists = (partition.replicas, partition.adding, partition.removing, partition.origin_order)
    return sum(key_bytes + _integers_bytes(brokers) for at, brokers in enumerate(lists) if brokers or at == 0)


@lru_cache(maxsize=_SHARED)
def _integers_bytes(numbers: tuple[int, ...]) -> int:
    return max(0, sum(len(str(number)) + 1 for number in numbers) - 1)


def decode_partition_state(topic_partition: TopicPartition, node: ZkNode) -> PartitionState:
    """Decode the state of a partition. Raises `MalformedZnode`, also if it is too large to be written again."""
    if len(node.data) > _MOST_STATE_BYTES:
        path, size_bytes = paths.partition_state(topic_partition), len(node.data)
        raise MalformedZnode(path, f"it has {size_bytes} bytes; the limit is {_MOST_STATE_BYTES}")
    try:
        return _read_shared_state(node.data, node.version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _state_error(paths.partition_state(topic_partition), node.data) from error


@lru_cache(maxsize=_SHARED)
def _read_shared_state(data: bytes, version: ZkVersion) -> PartitionState:
    """Return one shared object for all states with equal data and version. Raises various errors for bad data."""
    json = orjson.loads(data)
    leader, leader_epoch, controller_epoch = json["leader"], json["leader_epoch"], json["controller_epoch"]
    isr = json["isr"]
    _require_integers(leader, leader_epoch, controller_epoch)
    if type(isr) is not list or not _is_in_range(leader, leader_epoch, controller_epoch):
        raise ValueError
    return PartitionState(
        leader_and_isr=LeaderAndIsr(
            leader=leader,
            isr=_share_brokers(*isr),
            leader_epoch=leader_epoch,
            leader_recovery_state=_RECOVERY_STATES[json.get("leader_recovery_state", 0)],
        ),
        controller_epoch=controller_epoch,
        partition_epoch=PartitionEpoch(version),
    )


@lru_cache(maxsize=_SHARED)
def encode_partition_state(leader_and_isr: LeaderAndIsr, controller_epoch: ControllerEpoch) -> bytes:
    """Encode a state as Kafka 3.9 does, with the recovery state only while the leader is recovering.

    The failure of a broker writes tens of thousands of states, few of them different. So this is one cached format
    string instead of a JSON encoder.
    """
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
def _share_brokers(*brokers: int) -> tuple[BrokerId, ...]:
    """Return one shared tuple for all partitions with the same brokers. Raises `TypeError` and `ValueError`."""
    _require_integers(*brokers)
    if brokers and not 0 <= min(brokers) <= max(brokers) <= INT32_MAX:
        raise ValueError
    return cast("tuple[BrokerId, ...]", brokers)


@lru_cache(maxsize=_SHARED, typed=True)
def _share_assignment(*replicas: int) -> ReplicaAssignment:
    """Return one shared assignment for all partitions at rest with the same replicas. Raises `TypeError` and
    `ValueError`."""
    brokers = _share_brokers(*replicas)
    if len(set(brokers)) != len(brokers):
        raise ValueError
    return ReplicaAssignment(replicas=brokers)


def _state_error(path: str, data: bytes) -> MalformedZnode:
    """Return the problem of a state, found by reading it again field by field."""
    try:
        json = json_object(path, data)
        for name, least, most in _STATE_BOUNDS:
            field(path, json, name, int)
            integer(path, json, name, at_least=least, at_most=most)
        broker_ids(path, "isr", field(path, json, "isr", list))
    except MalformedZnode as error:
        return error
    recovery = describe(json.get("leader_recovery_state"))
    return MalformedZnode(path, f'"leader_recovery_state" must be 0 or 1, found {recovery}')


def encode_topic_id(topic_id: TopicId) -> str:
    """Encode a topic id as Kafka does: 22 characters of base64url."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def decode_topic_id(path: str, text: str | None) -> TopicId | None:
    """Decode a topic id. Return None for the id that means "no id". Raises `MalformedZnode`."""
    if text is None:
        return None
    if not _TOPIC_ID.fullmatch(text):
        raise MalformedZnode(path, f'"topic_id" must be 22 characters of base64url (a UUID), found {describe(text)}')
    topic_id = UUID(bytes=urlsafe_b64decode(f"{text}=="))
    return None if topic_id == _NO_ID else TopicId(topic_id)


def _among(replicas: tuple[BrokerId, ...], moving: tuple[BrokerId, ...]) -> tuple[BrokerId, ...]:
    """Return the adding or removing replicas that are assigned. Kafka keeps both in the assignment during a
    reassignment.

    An unassigned one is dropped: an added log would belong to nobody, and a removal would never end.
    """
    return tuple(broker for broker in moving if broker in replicas)


def _partition_id(path: str, key: str, most_digits: int) -> PartitionId:
    number = _number(key)
    if number is not None and len(key) > most_digits:
        raise MalformedZnode(path, f"the number of partition {key} is too long for the name of its folder on a broker")
    if number is None:
        raise MalformedZnode(path, f'"partitions" must have partition numbers as its keys, found {describe(key)}')
    return number


@lru_cache(maxsize=_SHARED)
def _number(key: str) -> PartitionId | None:
    return paths.parse_partition_number(key)


def _replicas(path: str, name: str, value: Any) -> tuple[BrokerId, ...]:
    replicas = broker_ids(path, name, value)
    if len(set(replicas)) != len(replicas):
        raise MalformedZnode(path, f'"{name}" names a broker twice: {describe(replicas)}; each may hold one replica')
    return tuple(BrokerId(replica) for replica in replicas)


_BESIDE_PARTITIONS_BYTES: Final = len(
    encode_topic(TopicAssignment(topic_id=TopicId(UUID(int=0)), partitions={}))
) + len(f'"{_ORIGINS}":{{}},')
