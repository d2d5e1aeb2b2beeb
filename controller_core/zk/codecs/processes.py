"""The ephemeral znodes of controller processes: one below `/kontroller/processes` for each."""

from dataclasses import dataclass
from typing import Any, Final

import orjson

from controller_core.model.ids import BrokerId, ControllerEpoch
from controller_core.zk.codecs.json_fields import (
    MalformedZnode,
    broker_ids,
    describe,
    field,
    json_object,
    require_version,
)

_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessZnode:
    """The state that a controller process publishes."""

    whereabouts: str
    """The place where it runs, in words for people."""
    is_hot: bool
    """True if it is a hot standby, which keeps the state of the cluster in memory."""
    hindrance: str | None = None
    """A reason, in words for people, not to give it the role. None if there is none."""
    leads_under: ControllerEpoch | None = None
    """The epoch in which the brokers know it as their controller. None for a standby."""
    unsupported_brokers: tuple[BrokerId, ...] = ()
    """Registered brokers whose Kafka version or mode it cannot lead."""
    hosts: tuple[str, ...] = ()
    """The hosts that its connections may come from: names or addresses."""


def decode_process(path: str, data: bytes) -> ProcessZnode:
    """Decode a process's znode. Raises `MalformedZnode` and `LaterVersion`."""
    json = json_object(path, data)
    require_version(path, json, _VERSION)
    unsupported = broker_ids(path, "unsupported_brokers", json.get("unsupported_brokers", []))
    return ProcessZnode(
        whereabouts=field(path, json, "whereabouts", str, "an unknown place"),
        is_hot=field(path, json, "hot", bool, False),
        hindrance=field(path, json, "hindrance", str, None),
        leads_under=field(path, json, "leads_under", int, None),
        unsupported_brokers=tuple(map(BrokerId, unsupported)),
        hosts=_decode_hosts(path, json),
    )


def _decode_hosts(path: str, json: dict[str, Any]) -> tuple[str, ...]:
    hosts = field(path, json, "hosts", list, [])
    for host in hosts:
        if not isinstance(host, str):
            raise MalformedZnode(path, f'"hosts" must hold text, found {describe(host)}')
    return tuple(hosts)


def encode_process(process: ProcessZnode) -> bytes:
    return orjson.dumps(
        {
            "version": _VERSION,
            "whereabouts": process.whereabouts,
            "hot": process.is_hot,
            "hindrance": process.hindrance,
            "leads_under": process.leads_under,
            "unsupported_brokers": process.unsupported_brokers,
            "hosts": process.hosts,
        }
    )
