"""The record of throttles as JSON: the wish of each owner, and the settings that were made for all.

In ZooKeeper each wish has a znode of its own below `/kontroller/throttles`, and the settings are in its data. Without
ZooKeeper one document has all."""

from typing import Annotated, Final, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import ALL_BROKERS, Claim, Claims, Move, Record, Throttle
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
    is_broker = path == ALL_BROKERS or (kind == "brokers" and paths.parse_broker_id(name) is not None)
    if not is_broker and not (kind == "topics" and explain_illegal(name) is None):
        raise ValueError("not the configuration of a broker or a topic")
    return path


_Topic = Annotated[str, AfterValidator(_topic)]
_Partition = Annotated[str, AfterValidator(_partition)]
_Brokers = list[Annotated[int, Field(ge=0, le=INT32_MAX)]]
_Replicas = Annotated[list[_Brokers], Field(min_length=2, max_length=2)]
_Model = TypeVar("_Model", bound=BaseModel)


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


class _Record(_Claims):
    throttles: dict[str, _Throttle]


def decode_throttle(path: str, data: bytes) -> Throttle:
    """Decode the throttle that an owner wants. Raises `MalformedZnode` and `LaterVersion`."""
    return _make_throttle(_validate(_Throttle, path, data, "a throttle"))


def encode_throttle(throttle: Throttle) -> bytes:
    return orjson.dumps({"version": _VERSION, **_format_throttle(throttle)})


def decode_claims(path: str, data: bytes) -> dict[str, dict[str, Claim]]:
    """Decode the settings that were made for throttles. Empty data and entities without settings claim nothing.

    Raises like `decode_throttle`.
    """
    return _make_claims(_validate(_Claims, path, data, "a list of claims")) if data else {}


def encode_claims(claims: Claims) -> bytes:
    return orjson.dumps({"version": _VERSION, "claims": _format_claims(claims)})


def decode_record(path: str, data: bytes) -> Record:
    """Decode a document with all throttles of a Kafka cluster. Raises like `decode_throttle`."""
    found = _validate(_Record, path, data, "a record of throttles")
    throttles = {owner: _make_throttle(each) for owner, each in found.throttles.items()}
    return Record(throttles=throttles, claims=_make_claims(found))


def encode_record(record: Record) -> bytes:
    throttles = {owner: _format_throttle(each) for owner, each in record.throttles.items()}
    return orjson.dumps({"version": _VERSION, "throttles": throttles, "claims": _format_claims(record.claims)})


def _validate(model: type[_Model], path: str, data: bytes, what: str) -> _Model:
    json = json_object(path, data)
    require_version(path, json, _VERSION)
    try:
        return model.model_validate(json)
    except ValidationError as error:
        raise MalformedZnode(path, f"not {what}: {error}") from error


def _make_throttle(found: _Throttle) -> Throttle:
    moves = {
        TopicPartition(TopicName(topic), PartitionId(int(number))): Move(
            origin=tuple(BrokerId(broker) for broker in origin), target=tuple(BrokerId(broker) for broker in target)
        )
        for topic, partitions in found.moves.items()
        for number, (origin, target) in partitions.items()
    }
    return Throttle(bytes_per_second=found.bytes_per_second, moves=moves, is_begun=found.is_begun)


def _format_throttle(throttle: Throttle) -> dict[str, object]:
    moves: dict[str, dict[str, list[tuple[BrokerId, ...]]]] = {}
    for (topic, number), move in throttle.moves.items():
        moves.setdefault(topic, {})[str(number)] = [move.origin, move.target]
    return {"bytes_per_second": throttle.bytes_per_second, "is_begun": throttle.is_begun, "moves": moves}


def _make_claims(found: _Claims) -> dict[str, dict[str, Claim]]:
    return {
        entity: {
            setting: Claim(values=tuple(claim.values), is_created=claim.is_created) for setting, claim in claims.items()
        }
        for entity, claims in found.claims.items()
        if claims
    }


def _format_claims(claims: Claims) -> dict[str, object]:
    return {
        entity: {name: {"values": each.values, "is_created": each.is_created} for name, each in settings.items()}
        for entity, settings in claims.items()
        if settings
    }
