"""Throttles in ZooKeeper: below `/kontroller/throttles` what each owner wants, in its own data what was set."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from controller_core.model.ids import BrokerId, PartitionId, TopicName, TopicPartition
from controller_core.model.throttles import Claim, Claims, Move, Throttle
from controller_core.zk.codecs.json_fields import MalformedZnode

_VERSION: Final = 1
_Brokers = list[Annotated[int, Field(ge=0)]]


class _Throttle(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    version: Literal[1]
    bytes_per_second: Annotated[int, Field(gt=0)]
    is_begun: bool
    moves: dict[str, dict[str, Annotated[list[_Brokers], Field(min_length=2, max_length=2)]]]


class _Claim(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    values: list[str]
    is_created: bool


class _Claims(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    version: Literal[1]
    claims: dict[str, dict[str, _Claim]]


def decode_throttle(path: str, data: bytes) -> Throttle:
    """What an owner wants. Raises `MalformedZnode`."""
    try:
        found = _Throttle.model_validate_json(data)
        moves = {
            TopicPartition(TopicName(topic), PartitionId(int(number))): Move(
                origin=tuple(BrokerId(broker) for broker in origin), target=tuple(BrokerId(broker) for broker in target)
            )
            for topic, partitions in found.moves.items()
            for number, (origin, target) in partitions.items()
        }
    except ValueError as error:
        raise MalformedZnode(path, f"no throttle: {error}") from error
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
    """What was set in which configurations; a znode without data claims nothing. Raises `MalformedZnode`."""
    if not data:
        return {}
    try:
        found = _Claims.model_validate_json(data)
    except ValidationError as error:
        raise MalformedZnode(path, f"no claims of throttles: {error}") from error
    return {
        entity: {
            setting: Claim(values=tuple(claim.values), is_created=claim.is_created) for setting, claim in claims.items()
        }
        for entity, claims in found.claims.items()
    }


def encode_claims(claims: Claims) -> bytes:
    def as_json(settings: Mapping[str, Claim]) -> dict[str, object]:
        return {name: {"values": claim.values, "is_created": claim.is_created} for name, claim in settings.items()}

    return orjson.dumps(
        {"version": _VERSION, "claims": {entity: as_json(settings) for entity, settings in claims.items() if settings}}
    )
