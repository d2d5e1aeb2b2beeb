"""Broker registrations, `/brokers/ids/N`: where a broker is reached and what it supports.

A broker's epoch is the czxid of this znode, not its mzxid: a broker that changes its listeners rewrites the data
and keeps its epoch, one that bounced has a new znode (KIP-380).
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from controller_core.model.ids import BrokerEpoch, BrokerId
from controller_core.model.metadata import Broker, Endpoint, FeatureRange
from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import MalformedZnode, described, field, integer, json_object
from controller_core.zk.session import ZkNode

_VERSION: Final = 5
_PLAINTEXT: Final = "PLAINTEXT"
_ENDPOINT: Final = re.compile(r"(?P<listener>[^:/]+)://\[?(?P<host>[0-9a-zA-Z\-%._:]*)\]?:(?P<port>-?[0-9]+)")


def decode_broker(broker_id: BrokerId, node: ZkNode) -> Broker:
    """A registration of any version since 1; the later fields may be absent. Raises `MalformedZnode`."""
    path = paths.broker(broker_id)
    json = json_object(path, node.data)
    return Broker(
        id=broker_id,
        epoch=BrokerEpoch(node.czxid),
        endpoints=_endpoints(path, json),
        rack=field(path, json, "rack", str, None),
        features=_features(path, field(path, json, "features", dict, {})),
    )


def encode_broker(broker: Broker, *, timestamp_ms: int = 0, jmx_port: int = -1) -> bytes:
    """What a Kafka 3.9 broker writes when it registers."""
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
    return orjson.dumps(json)


def _endpoints(path: str, json: dict[str, Any]) -> tuple[Endpoint, ...]:
    if "endpoints" not in json:
        host = field(path, json, "host", str)
        port = integer(path, json, "port")
        return (Endpoint(listener=_PLAINTEXT, security_protocol=_PLAINTEXT, host=host, port=port),)
    protocols = field(path, json, "listener_security_protocol_map", dict, {})
    return tuple(_endpoint(path, text, protocols) for text in field(path, json, "endpoints", list))


def _endpoint(path: str, text: object, protocols: Mapping[str, Any]) -> Endpoint:
    match = _ENDPOINT.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise MalformedZnode(path, f"an endpoint must be LISTENER://host:port, found {described(text)}")
    listener = match["listener"]
    protocol = field(path, dict(protocols), listener, str, listener)
    return Endpoint(listener=listener, security_protocol=protocol, host=match["host"], port=int(match["port"]))


def _connection_string(endpoint: Endpoint) -> str:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    return f"{endpoint.listener}://{host}:{endpoint.port}"


def _features(path: str, features: Mapping[str, Any]) -> dict[str, FeatureRange]:
    ranges = {}
    for name, versions in features.items():
        if not isinstance(versions, dict):
            raise MalformedZnode(path, f'feature "{name}" must be an object, found {described(versions)}')
        ranges[name] = FeatureRange(
            min_version=integer(path, versions, "min_version"),
            max_version=integer(path, versions, "max_version"),
        )
    return ranges
