"""Throttles in ZooKeeper: the wishes of each owner below `/kontroller/throttles`, and the settings made for them in its
data."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import Claim, Claims, Move, Throttle
from controller_core.model.topics.topic_names import explain_illegal
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import INT32_MAX, INT64_MAX, MalformedZnode, json_object, require_version

_VERSION: Final = 1


def _topic(name: str) -> str:
    if explain_illegal(name) is not None:
        raise ValueError("not a valid topic name")
    return name


def _partition(name: str) -> str:
    if paths.parse_partition_number(name) is None:
        raise ValueError("not a valid partition number")
    return name


def _entity(path: str) -> str:
    """Accept only brokers and topics, which throttles are set for. Other names would be used as paths."""
    kind, _, name = path.partition("/")
    is_broker = kind == "brokers" and paths.parse_broker_id(name) is not None
    if not is_broker and not (kind == "topics" and explain_illegal(name) is None):
        raise ValueError("not the configuration of a broker or a topic")
    return path


_Topic = Annotated[str, AfterValidator(_topic)]
_Partition = Annotated[str, AfterValidator(_partition)]
_Brokers = list[Annotated[int, Field(ge=0, le=INT32_MAX)]]
_Replicas = Annotated[list[_Brokers], Field(min_length=2, max_length=2)]


class _Throttle(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    bytes_per_second: Annotated[int, Field(gt=0, le=INT64_MAX)]
    is_begun: bool
    moves: dict[_Topic, dict[_Partition, _Replicas]]


class _Claim(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    values: list[str]
    is_created: bool


class _Claims(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    claims: dict[Annotated[str, AfterValidator(_entity)], dict[str, _Claim]]


def decode_throttle(path: str, data: bytes) -> Throttle:
    """Decode the throttle that an owner wants. Raises `MalformedZnode` and `LaterVersion`."""
    json = _read_json(path, data)
    try:
        found = _Throttle.model_validate(json)
        moves = {
            TopicPartition(TopicName(topic), PartitionId(int(number))): Move(
                origin=tuple(BrokerId(broker) for broker in origin), target=tuple(BrokerId(broker) for broker in target)
            )
            for topic, partitions in found.moves.items()
            for number, (origin, target) in partitions.items()
        }
    except ValidationError as error:
        raise MalformedZnode(path, f"not a throttle: {error}") from error
    return Throttle(bytes_per_second=found.bytes_per_second, moves=moves, is_begun=found.is_begun)


def encode_throttle(throttle: Throttle) -> bytes:
    moves: dict[str, dict[str, list[tuple[BrokerId, ...]]]] = {}
    for (topic, number), move in throttle.moves.items():
        moves.setdefault(topic, {})[str(number)] = [move.origin, move.target]
    return orjson.dumps(
        {
            "version": _VERSION,
            "bytes_per_second": throttle.bytes_per_second,
            "is_begun": throttle.is_begun,
            "moves": moves,
        }
    )


def decode_claims(path: str, data: bytes) -> dict[str, dict[str, Claim]]:
    """Decode the settings that were made for throttles. Empty data and entities without settings claim nothing.

    Raises like `decode_throttle`.
    """
    if not data:
        return {}
    json = _read_json(path, data)
    try:
        found = _Claims.model_validate(json)
    except ValidationError as error:
        raise MalformedZnode(path, f"not a list of claims: {error}") from error
    return {
        entity: {
            setting: Claim(values=tuple(claim.values), is_created=claim.is_created) for setting, claim in claims.items()
        }
        for entity, claims in found.claims.items()
        if claims
    }


def encode_claims(claims: Claims) -> bytes:
    def make_json(settings: Mapping[str, Claim]) -> dict[str, object]:
        return {name: {"values": claim.values, "is_created": claim.is_created} for name, claim in settings.items()}

    return orjson.dumps(
        {
            "version": _VERSION,
            "claims": {entity: make_json(settings) for entity, settings in claims.items() if settings},
        }
    )


def _read_json(path: str, data: bytes) -> dict[str, Any]:
    json = json_object(path, data)
    require_version(path, json, _VERSION)
    return json
