"""Which cluster it is, who is the controller, in which epoch, and which producer ids it gave out last."""

from dataclasses import dataclass
from typing import Final

import orjson

from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import MalformedZnode, field, integer, json_object

_CONTROLLER_VERSION: Final = 2
_NO_KRAFT_EPOCH: Final = -1
_PRODUCER_IDS_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdBlock:
    """A range of producer ids, both ends included, and the broker it was given to."""

    first: int
    last: int
    broker: BrokerId


def decode_cluster_id(data: bytes) -> str:
    """The id that the first broker gave the cluster. Raises `MalformedZnode`."""
    return str(field(paths.CLUSTER_ID, json_object(paths.CLUSTER_ID, data), "id", str))


def decode_controller(data: bytes) -> BrokerId:
    """The id that holds `/controller`, of any version. Raises `MalformedZnode`."""
    return BrokerId(integer(paths.CONTROLLER, json_object(paths.CONTROLLER, data), "brokerid"))


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
    """The epoch, which stands there as plain decimal text. Raises `MalformedZnode`."""
    try:
        return ControllerEpoch(int(data))
    except ValueError as error:
        shown = data[:80].decode(errors="replace")
        raise MalformedZnode(paths.CONTROLLER_EPOCH, f"expected a decimal number such as 7, found {shown!r}") from error


def encode_controller_epoch(epoch: ControllerEpoch) -> bytes:
    return str(epoch).encode()


def decode_producer_id_block(data: bytes) -> ProducerIdBlock:
    """Raises `MalformedZnode`."""
    path = paths.PRODUCER_ID_BLOCK
    json = json_object(path, data)
    return ProducerIdBlock(
        first=integer(path, json, "block_start"),
        last=integer(path, json, "block_end"),
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
