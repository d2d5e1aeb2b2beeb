"""The record of throttles as JSON: the wish of each owner, and the settings that were made for all.

Without ZooKeeper one document has all. In ZooKeeper the document in `/kontroller/throttles` has only the settings, and
each wish has a znode of its own below it."""

from typing import Annotated, Final, TypeVar

import orjson
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import ALL_BROKERS, Claim, Move, Record, Throttle
from controller_core.model.topics.topic_names import explain_illegal
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import INT32_MAX, INT64_MAX, MalformedZnode, json_object, require_version

_VERSION: Final = 1


def _topic(name: TopicName) -> TopicName:
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


_Topic = Annotated[TopicName, AfterValidator(_topic)]
_Partition = Annotated[str, AfterValidator(_partition)]
_Brokers = tuple[Annotated[BrokerId, Field(ge=0, le=INT32_MAX)], ...]
_Model = TypeVar("_Model", bound=BaseModel)


class _Throttle(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    bytes_per_second: Annotated[int, Field(gt=0, le=INT64_MAX)]
    is_begun: bool
    moves: dict[_Topic, dict[_Partition, tuple[_Brokers, _Brokers]]]


class _Record(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    throttles: dict[str, _Throttle] = {}
    claims: dict[Annotated[str, AfterValidator(_entity)], dict[str, Claim]]


def decode_throttle(path: str, data: bytes) -> Throttle:
    """Decode the throttle that an owner wants. Raises `MalformedZnode` and `LaterVersion`."""
    return _make_throttle(_validate(_Throttle, path, data, "a throttle"))


def encode_throttle(throttle: Throttle) -> bytes:
    return orjson.dumps({"version": _VERSION, **_format_throttle(throttle)})


def decode_record(path: str, data: bytes) -> Record:
    """Decode the throttles and claims of a Kafka cluster. Empty data and entities without settings claim nothing.

    Raises like `decode_throttle`.
    """
    if not data:
        return Record()
    found = _validate(_Record, path, data, "a record of throttles")
    throttles = {owner: _make_throttle(each) for owner, each in found.throttles.items()}
    return Record(throttles=throttles, claims={entity: each for entity, each in found.claims.items() if each})


def encode_record(record: Record) -> bytes:
    throttles = {owner: _format_throttle(each) for owner, each in record.throttles.items()}
    claims = {entity: each for entity, each in record.claims.items() if each}
    return orjson.dumps({"version": _VERSION, "throttles": throttles, "claims": claims})


def _validate(model: type[_Model], path: str, data: bytes, what: str) -> _Model:
    require_version(path, json_object(path, data), _VERSION)
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise MalformedZnode(path, f"not {what}: {error}") from error


def _make_throttle(found: _Throttle) -> Throttle:
    moves = {
        TopicPartition(topic, PartitionId(int(number))): Move(origin=origin, target=target)
        for topic, partitions in found.moves.items()
        for number, (origin, target) in partitions.items()
    }
    return Throttle(bytes_per_second=found.bytes_per_second, moves=moves, is_begun=found.is_begun)


def _format_throttle(throttle: Throttle) -> dict[str, object]:
    moves: dict[str, dict[str, list[tuple[BrokerId, ...]]]] = {}
    for (topic, number), move in throttle.moves.items():
        moves.setdefault(topic, {})[str(number)] = [move.origin, move.target]
    return {"bytes_per_second": throttle.bytes_per_second, "is_begun": throttle.is_begun, "moves": moves}
