"""Broker registrations, `/brokers/ids/N`: the addresses and features of a broker.

The broker epoch is the czxid of this znode, not its mzxid: a broker that changes its listeners rewrites the data and
keeps its epoch, while a restarted one has a new znode (KIP-380).

Brokers reject an UpdateMetadata request as a whole if it has one bad endpoint (`kafka.cluster.Broker`). So an endpoint
with a protocol, host or port that the request cannot carry is left out, as is the second endpoint of a listener;
`Broker.unusable` has the reasons. A registration without any usable endpoint is malformed.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, Endpoint, FeatureRange, SecurityProtocol
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import (
    INT16_MAX,
    MalformedZnode,
    describe,
    field,
    integer,
    json_object,
    require_sendable,
    require_version,
    text,
)
from controller_core.zk.session import ZkNode

_VERSION: Final = 5
_SHUTDOWNS_VERSION: Final = 1
_IS_OURS: Final = "kontroller_broker"
_PLAINTEXT: Final = SecurityProtocol.PLAINTEXT.name
_ENDPOINT: Final = re.compile(r"(?P<listener>[^:/]+)://\[?(?P<host>[0-9a-zA-Z\-%._:]+)\]?:(?P<port>[0-9]{1,5})")
_PORTS: Final = range(1 << 16)


def decode_broker(broker_id: BrokerId, node: ZkNode) -> Broker:
    """Decode a registration of version 1 or later. Later fields may be absent. Raises `MalformedZnode`."""
    path = paths.broker(broker_id)
    json = json_object(path, node.data)
    endpoints, unusable = _endpoints(path, json)
    return Broker(
        id=broker_id,
        epoch=BrokerEpoch(node.czxid),
        endpoints=endpoints,
        rack=text(path, json, "rack", None),
        features=_features(path, field(path, json, "features", dict, {})),
        is_ours=json.get(_IS_OURS) is True,
        unusable=unusable,
    )


def encode_broker(broker: Broker, *, timestamp_ms: int = 0, jmx_port: int = -1) -> bytes:
    """Encode a registration as Kafka 3.9 does. Kontroller's own brokers get a mark that others ignore."""
    plaintext = next((e for e in broker.endpoints if e.security_protocol == _PLAINTEXT), None)
    json: dict[str, object] = {
        "version": _VERSION,
        "host": plaintext.host if plaintext else None,
        "port": plaintext.port if plaintext else -1,
        "endpoints": [_connection_string(endpoint) for endpoint in broker.endpoints],
        "listener_security_protocol_map": {e.listener: e.security_protocol for e in broker.endpoints},
        "jmx_port": jmx_port,
        "timestamp": str(timestamp_ms),
        "features": {
            name: {"min_version": versions.min_version, "max_version": versions.max_version}
            for name, versions in broker.features.items()
        },
    }
    if broker.rack is not None:
        json["rack"] = broker.rack
    if broker.is_ours:
        json[_IS_OURS] = True
    return orjson.dumps(json)


def _endpoints(path: str, json: dict[str, Any]) -> tuple[tuple[Endpoint, ...], tuple[str, ...]]:
    """Return the usable endpoints, and the problems of the others."""
    if "endpoints" not in json:
        # Registrations of version 1 have one host and port.
        host, port = field(path, json, "host", str), integer(path, json, "port", at_most=_PORTS[-1])
        return (_endpoint(path, f"{_PLAINTEXT}://{host}:{port}", {}),), ()
    protocols = field(path, json, "listener_security_protocol_map", dict, {})
    endpoints: dict[str, Endpoint] = {}
    unusable: list[str] = []
    for said in field(path, json, "endpoints", list):
        try:
            endpoint = _endpoint(path, said, protocols)
        except MalformedZnode as error:
            unusable.append(error.reason)
            continue
        if endpoints.setdefault(endpoint.listener, endpoint) is not endpoint:
            unusable.append(f'listener "{endpoint.listener[:80]}" appears twice; give each its own name')
    if unusable and not endpoints:
        raise MalformedZnode(path, "; ".join(unusable))
    return tuple(endpoints.values()), tuple(unusable)


def _endpoint(path: str, said: object, protocols: dict[str, Any]) -> Endpoint:
    match = _ENDPOINT.fullmatch(said) if isinstance(said, str) else None
    if match is None or int(match["port"]) not in _PORTS:
        raise MalformedZnode(
            path, f"an endpoint must be LISTENER://host:port, port from 0 to {_PORTS[-1]}, found {describe(said)}"
        )
    listener, host = match["listener"], match["host"]
    require_sendable(path, "endpoints", host)
    require_sendable(path, "endpoints", listener)
    protocol = field(path, protocols, listener, str, listener).upper()
    if protocol not in SecurityProtocol.__members__:
        known = ", ".join(SecurityProtocol.__members__)
        raise MalformedZnode(
            path, f'listener "{listener[:80]}" has the unknown protocol {describe(protocol)}; use one of {known}'
        )
    return Endpoint(listener=listener.upper(), security_protocol=protocol, host=host, port=int(match["port"]))


def _connection_string(endpoint: Endpoint) -> str:
    return f"{endpoint.listener}://{endpoint.address}"


def _features(path: str, features: Mapping[str, Any]) -> dict[str, FeatureRange]:
    ranges = {}
    for name, versions in features.items():
        if not isinstance(versions, dict):
            raise MalformedZnode(path, f'feature "{name[:80]}" must be an object, found {describe(versions)}')
        ranges[name] = FeatureRange(
            min_version=integer(path, versions, "min_version", at_most=INT16_MAX),
            max_version=integer(path, versions, "max_version", at_most=INT16_MAX),
        )
    return ranges


def decode_granted_shutdowns(data: bytes) -> dict[BrokerId, BrokerEpoch]:
    """Decode `/kontroller/granted_shutdowns`: the brokers that may stop, and the epochs in which they asked for it.

    Raises `MalformedZnode` and `LaterVersion`.
    """
    path = paths.GRANTED_SHUTDOWNS
    json = json_object(path, data)
    require_version(path, json, _SHUTDOWNS_VERSION)
    granted: dict[BrokerId, BrokerEpoch] = {}
    for entry in field(path, json, "brokers", list, []):
        if type(entry) is not dict:
            raise MalformedZnode(path, f'"brokers" must be a list of objects, found {describe(entry)}')
        granted[BrokerId(integer(path, entry, "id"))] = BrokerEpoch(field(path, entry, "epoch", int))
    return granted


def encode_granted_shutdowns(granted: Mapping[BrokerId, BrokerEpoch]) -> bytes:
    entries = [{"id": broker, "epoch": epoch} for broker, epoch in granted.items()]
    return orjson.dumps({"version": _SHUTDOWNS_VERSION, "brokers": entries})
