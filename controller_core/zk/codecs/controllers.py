"""The cluster's id, its controller and epoch, requests for the controller role, and the last block of producer ids."""

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
"""Used instead of an id if any of Kafka's brokers shall get the role."""
_EPOCH: Final = re.compile(rb"\s*(?P<epoch>[0-9]{1,10})\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdBlock:
    """A range of producer ids, both ends included, and the broker that got it."""

    first: int
    last: int
    broker: BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleRequest:
    """A request that names the next controller."""

    holder: BrokerId | None
    """The id of a Kontroller process. None if any of Kafka's brokers shall get the role."""


def decode_cluster_id(data: bytes) -> str:
    """Decode the cluster id, which the first broker wrote. Raises `MalformedZnode`."""
    return str(text(paths.CLUSTER_ID, json_object(paths.CLUSTER_ID, data), "id"))


def decode_controller(data: bytes) -> BrokerId:
    """Decode the id of the controller, from any version of `/controller`. Raises `MalformedZnode`."""
    return BrokerId(integer(paths.CONTROLLER, json_object(paths.CONTROLLER, data), "brokerid"))


def is_kraft_controller(data: bytes) -> bool:
    """Return True if `/controller` belongs to a KRaft controller, which leads the brokers during a migration (KIP-866).

    Raises `MalformedZnode`.
    """
    json = {"kraftControllerEpoch": _NO_KRAFT_EPOCH} | json_object(paths.CONTROLLER, data)
    return integer(paths.CONTROLLER, json, "kraftControllerEpoch", at_least=_NO_KRAFT_EPOCH) > _NO_KRAFT_EPOCH


def encode_controller(broker_id: BrokerId, timestamp_ms: int) -> bytes:
    """Encode `/controller`. `kraftControllerEpoch` is always -1: brokers refuse configuration writes if it is
    positive."""
    return orjson.dumps(
        {
            "version": _CONTROLLER_VERSION,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": _NO_KRAFT_EPOCH,
        }
    )


def decode_controller_epoch(data: bytes) -> ControllerEpoch:
    """Decode the epoch, which is plain decimal text. Raises `MalformedZnode`.

    The largest possible number is refused. The next controller could not raise it, and brokers ignore controllers with
    a smaller epoch.
    """
    match = _EPOCH.fullmatch(data)
    if match is None:
        shown = data[:80].decode(errors="replace")
        raise MalformedZnode(paths.CONTROLLER_EPOCH, f"expected a decimal number such as 7, found {shown!r}")
    epoch = int(match["epoch"])
    if epoch >= INT32_MAX:
        raise MalformedZnode(
            paths.CONTROLLER_EPOCH, f"must be below {INT32_MAX}, found {epoch}: write the last valid epoch"
        )
    return ControllerEpoch(epoch)


def encode_controller_epoch(epoch: ControllerEpoch) -> bytes:
    return str(epoch).encode()


def decode_role_request(data: bytes) -> RoleRequest:
    """Decode a request for the controller role. Raises `MalformedZnode` and `LaterVersion`."""
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
    """Decode the last block of producer ids. Raises `MalformedZnode`."""
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
