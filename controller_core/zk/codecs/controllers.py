"""Which cluster it is, who is the controller, in which epoch, who is to be, and which producer ids it gave out last."""

import re
from dataclasses import dataclass
from typing import Final

import orjson

from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import (
    INT32_MAX,
    INT64_MAX,
    MalformedZnode,
    integer,
    json_object,
    require_version,
    text,
)

_CONTROLLER_VERSION: Final = 2
_NO_KRAFT_EPOCH: Final = -1
_PRODUCER_IDS_VERSION: Final = 1
_ROLE_REQUEST_VERSION: Final = 1
_BROKERS: Final = "brokers"
"""Stands for an id where the role is to be one of Kafka's brokers', whichever is first."""
_EPOCH: Final = re.compile(rb"\s*(?P<epoch>[0-9]{1,10})\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdBlock:
    """A range of producer ids, both ends included, and the broker it was given to."""

    first: int
    last: int
    broker: BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRequest:
    """Who is to have the role, where somebody asked for it."""

    holder: BrokerId | None
    """The id of a process of ours; None: one of Kafka's brokers."""


def decode_cluster_id(data: bytes) -> str:
    """The id that the first broker gave the cluster. Raises `MalformedZnode`."""
    return str(text(paths.CLUSTER_ID, json_object(paths.CLUSTER_ID, data), "id"))


def decode_controller(data: bytes) -> BrokerId:
    """The id that holds `/controller`, of any version. Raises `MalformedZnode`."""
    return BrokerId(integer(paths.CONTROLLER, json_object(paths.CONTROLLER, data), "brokerid"))


def is_kraft_controller(data: bytes) -> bool:
    """Whether `/controller` is a KRaft controller's, which migrates the cluster and leads its brokers meanwhile (KIP-866).

    Raises `MalformedZnode`."""
    json = {"kraftControllerEpoch": _NO_KRAFT_EPOCH} | json_object(paths.CONTROLLER, data)
    return integer(paths.CONTROLLER, json, "kraftControllerEpoch", at_least=_NO_KRAFT_EPOCH) > _NO_KRAFT_EPOCH


def encode_controller(broker_id: BrokerId, timestamp_ms: int) -> bytes:
    """Brokers refuse configuration writes where `kraftControllerEpoch` is positive, so it is always -1."""
    return orjson.dumps(
        {
            "version": _CONTROLLER_VERSION,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": _NO_KRAFT_EPOCH,
        }
    )


def decode_controller_epoch(data: bytes) -> ControllerEpoch:
    """The epoch, which stands there as plain decimal text. Raises `MalformedZnode`.

    The last number of its type is refused: no controller could come after it, and no broker would listen to one that
    began again with a smaller number."""
    match = _EPOCH.fullmatch(data)
    if match is None:
        shown = data[:80].decode(errors="replace")
        raise MalformedZnode(paths.CONTROLLER_EPOCH, f"expected a decimal number such as 7, found {shown!r}")
    epoch = int(match["epoch"])
    if epoch >= INT32_MAX:
        raise MalformedZnode(
            paths.CONTROLLER_EPOCH, f"must be below {INT32_MAX}, found {epoch}: write what it was before"
        )
    return ControllerEpoch(epoch)


def encode_controller_epoch(epoch: ControllerEpoch) -> bytes:
    return str(epoch).encode()


def decode_role_request(data: bytes) -> RoleRequest:
    """Raises `MalformedZnode`."""
    path = paths.ROLE_REQUEST
    json = json_object(path, data)
    require_version(path, json, _ROLE_REQUEST_VERSION)
    if json.get("holder") == _BROKERS:
        return RoleRequest(holder=None)
    return RoleRequest(holder=BrokerId(integer(path, json, "holder")))


def encode_role_request(request: RoleRequest) -> bytes:
    holder = _BROKERS if request.holder is None else request.holder
    return orjson.dumps({"version": _ROLE_REQUEST_VERSION, "holder": holder})


def decode_producer_id_block(data: bytes) -> ProducerIdBlock:
    """Raises `MalformedZnode`."""
    path = paths.PRODUCER_ID_BLOCK
    json = json_object(path, data)
    return ProducerIdBlock(
        first=integer(path, json, "block_start", at_most=INT64_MAX),
        last=integer(path, json, "block_end", at_most=INT64_MAX),
        broker=BrokerId(integer(path, json, "broker")),
    )


def encode_producer_id_block(block: ProducerIdBlock) -> bytes:
    return orjson.dumps(
        {
            "version": _PRODUCER_IDS_VERSION,
            "broker": block.broker,
            "block_start": str(block.first),
            "block_end": str(block.last),
        }
    )
