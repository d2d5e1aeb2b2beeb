"""Signs of life of controller processes: one ephemeral znode below `/kontroller/processes` for each."""

from dataclasses import dataclass
from typing import Final

import orjson

from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.zk.codecs.json_fields import broker_ids, field, json_object, require_version

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessZnode:
    """What a controller process says of itself."""

    whereabouts: str
    """Where it runs, in words for people."""
    is_hot: bool
    """Whether it stands by with the state of the cluster read."""
    hindrance: str | None = None
    """Why it would not do well with the role, in words for people; None where it would."""
    leads_under: ControllerEpoch | None = None
    """The epoch under which the brokers have heard from it as their controller; None where it stands by."""
    unsupported_brokers: tuple[BrokerId, ...] = ()
    """Registered brokers of a release or a mode of Kafka that it cannot lead."""


def decode_process(path: str, data: bytes) -> ProcessZnode:
    """Raises `MalformedZnode`."""
    json = json_object(path, data)
    require_version(path, json, _VERSION)
    unsupported = broker_ids(path, "unsupported_brokers", json.get("unsupported_brokers", []))
    return ProcessZnode(
        whereabouts=field(path, json, "whereabouts", str, "an unknown place"),
        is_hot=field(path, json, "hot", bool, False),
        hindrance=field(path, json, "hindrance", str, None),
        leads_under=field(path, json, "leads_under", int, None),
        unsupported_brokers=tuple(map(BrokerId, unsupported)),
    )


def encode_process(process: ProcessZnode) -> bytes:
    return orjson.dumps(
        {
            "version": _VERSION,
            "whereabouts": process.whereabouts,
            "hot": process.is_hot,
            "hindrance": process.hindrance,
            "leads_under": process.leads_under,
            "unsupported_brokers": process.unsupported_brokers,
        }
    )
