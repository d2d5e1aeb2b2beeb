"""Replica assignments of topics, as Kafka's tools take them on the command line and in JSON files."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller_core.client.errors import InvalidArgument
from controller_core.model.ids import BrokerId, PartitionId, PartitionReplica, TopicName, TopicPartition
from controller_core.model.reassignment import ANY_DIRECTORY

_MAX_BYTES: Final = 64 << 20
_MAX_INT: Final = (1 << 31) - 1
_BYTE_ORDER_MARK: Final = "\ufeff"
_DIGITS: Final = re.compile(r"[0-9]{1,10}")

Replicas = tuple[BrokerId, ...]
Id = Annotated[int, Field(ge=0, le=_MAX_INT, strict=True)]


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True)

    topic: str = Field(min_length=1, max_length=249)
    partition: Id

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(TopicName(self.topic), PartitionId(self.partition))


class _Move(_Entry):
    replicas: Annotated[tuple[Id, ...], Field(min_length=1)]
    log_dirs: tuple[str, ...] = ()


class _Plan(BaseModel):
    version: Literal[1] = 1
    partitions: tuple[_Move, ...]


class _Choice(BaseModel):
    partitions: tuple[_Entry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A plan: the replicas of each partition, and the log directories of those replicas for which it names one."""

    targets: Mapping[TopicPartition, Replicas]
    directories: Mapping[PartitionReplica, str] = field(default_factory=dict)


def parse_replica_assignment(text: str) -> dict[PartitionId, Replicas]:
    """Parse `1:2,2:3`: partition 0 on brokers 1 and 2, partition 1 on 2 and 3. Raises `InvalidArgument`."""
    try:
        parsed = [tuple(BrokerId(_parse_id(broker)) for broker in part.split(":")) for part in text.split(",")]
    except ValueError as error:
        raise InvalidArgument(
            f"{text!r} is not a replica assignment, such as 1:2,2:3 for two partitions: {error}"
        ) from None
    assignment = {PartitionId(number): replicas for number, replicas in enumerate(parsed)}
    require_sound(assignment)
    return assignment


def require_sound(assignment: Mapping[PartitionId, Replicas]) -> None:
    """Raise `InvalidArgument` if partitions are left out, differ in their number of replicas, or name a broker
    twice."""
    if sorted(assignment) != list(range(len(assignment))):
        raise InvalidArgument(f"partitions {sorted(assignment)} are assigned: assign all from 0 on")
    for partition, replicas in assignment.items():
        if len(set(replicas)) != len(replicas) or not replicas:
            raise InvalidArgument(f"partition {partition} would have replicas {list(replicas)}: name each broker once")
    if len({len(replicas) for replicas in assignment.values()}) > 1:
        raise InvalidArgument("partitions would have different numbers of replicas: give each the same")


def parse_reassignment(text: str) -> dict[TopicPartition, Replicas]:
    """Return the replicas in the JSON that kafka-reassign-partitions reads and writes. Raises `InvalidArgument`."""
    return dict(read_reassignment(text).targets)


def read_reassignment(text: str) -> Reassignment:
    """Parse the JSON that kafka-reassign-partitions reads and writes. Raises `InvalidArgument`."""
    plan = _parse(text, _Plan, '{"version":1,"partitions":[{"topic":"foo","partition":1,"replicas":[1,2,3]}]}')
    targets: dict[TopicPartition, Replicas] = {}
    directories: dict[PartitionReplica, str] = {}
    for move in plan.partitions:
        if move.log_dirs and len(move.log_dirs) != len(move.replicas):
            raise InvalidArgument(
                f"{move.key} has {len(move.replicas)} replicas and {len(move.log_dirs)} log_dirs: name one for each "
                f'replica, "{ANY_DIRECTORY}" for one of the broker\'s choice'
            )
        if len(set(move.replicas)) != len(move.replicas):
            raise InvalidArgument(f"{move.key} would have replicas {list(move.replicas)}: name each broker once")
        if move.key in targets:
            raise InvalidArgument(f"{move.key} is there twice: give its target once")
        targets[move.key] = tuple(map(BrokerId, move.replicas))
        directories |= pair_directories(move.key, targets[move.key], move.log_dirs)
    if not targets:
        raise InvalidArgument("there is no partition in it: name at least one")
    return Reassignment(targets=targets, directories=directories)


def pair_directories(
    partition: TopicPartition, replicas: Replicas, log_dirs: Sequence[str]
) -> dict[PartitionReplica, str]:
    """Return the named log directories of a partition's replicas, which are in the same order."""
    return {
        PartitionReplica(partition, broker): directory
        for broker, directory in zip(replicas, log_dirs, strict=False)
        if directory != ANY_DIRECTORY
    }


def format_reassignment(
    targets: Mapping[TopicPartition, Sequence[int]], directories: Mapping[PartitionReplica, str] | None = None
) -> str:
    """Return the JSON that `read_reassignment` and Kafka's tool read."""
    named = directories or {}
    partitions = [
        {
            "topic": tp.topic,
            "partition": tp.partition,
            "replicas": list(replicas),
            "log_dirs": [named.get(PartitionReplica(tp, BrokerId(each)), ANY_DIRECTORY) for each in replicas],
        }
        for tp, replicas in sorted(targets.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def parse_partitions(text: str) -> tuple[TopicPartition, ...]:
    """Parse the JSON that kafka-leader-election reads. Raises `InvalidArgument`."""
    choice = _parse(text, _Choice, '{"partitions":[{"topic":"foo","partition":1}]}')
    keys = [entry.key for entry in choice.partitions]
    if not keys:
        raise InvalidArgument("there is no partition in it: name at least one")
    if len(set(keys)) != len(keys):
        twice, _ = Counter(keys).most_common(1)[0]
        raise InvalidArgument(f"{twice} is there twice: name it once")
    return tuple(keys)


def format_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Return the JSON that `parse_partitions` and Kafka's tool read."""
    entries = [{"topic": tp.topic, "partition": tp.partition} for tp in sorted(partitions)]
    return json.dumps({"partitions": entries}, separators=(",", ":"))


def _parse(text: str, model: type[Any], example: str) -> Any:
    if len(text) > _MAX_BYTES:
        raise InvalidArgument(f"it has {len(text)} characters, more than {_MAX_BYTES}: split it")
    try:
        return model.model_validate_json(text.removeprefix(_BYTE_ORDER_MARK))
    except ValidationError as error:
        said = "; ".join(f"{'.'.join(map(str, each['loc'])) or 'it'}: {each['msg']}" for each in error.errors()[:3])
        raise InvalidArgument(f"{said}: write it as {example}") from None


def _parse_id(text: str) -> int:
    digits = text.strip()
    if not _DIGITS.fullmatch(digits) or int(digits) > _MAX_INT:
        raise ValueError(f"{digits!r} is not a broker's id")
    return int(digits)
