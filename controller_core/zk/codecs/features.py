"""The finalized features, `/feature`: their levels, and whether the cluster uses features at all (KIP-584).

Brokers of Kafka 3.9 write version 2. Version 1, up to `inter.broker.protocol.version` 3.2, also had a minimum level,
which is no longer used. Newer versions are refused, because their meaning is unknown.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import (
    INT16_MAX,
    MalformedZnode,
    describe,
    integer,
    json_object,
    require_sendable,
)
from controller_core.zk.codecs.json_fields import field as json_field

_VERSIONS: Final = (1, 2)
_DISABLED: Final = 0
_ENABLED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureZnode:
    """The content of `/feature`. `version` is the format version, not the epoch."""

    version: int = max(_VERSIONS)
    is_enabled: bool = True
    features: Mapping[str, int] = field(default_factory=dict)


def decode_features(data: bytes) -> FeatureZnode:
    """Decode the features. Raises `MalformedZnode`, also for unknown versions."""
    path = paths.FEATURE
    json = json_object(path, data)
    version = integer(path, json, "version")
    if version not in _VERSIONS:
        raise MalformedZnode(path, f"version {version} is unknown; known are {_VERSIONS[0]} to {_VERSIONS[-1]}")
    status = integer(path, json, "status")
    if status not in (_DISABLED, _ENABLED):
        raise MalformedZnode(path, f'"status" must be {_DISABLED} (disabled) or {_ENABLED} (enabled), found {status}')
    levels: dict[str, Any] = json_field(path, json, "features", dict)
    return FeatureZnode(
        version=version,
        is_enabled=status == _ENABLED,
        features={name: _level(path, name, levels[name], version) for name in levels},
    )


def encode_features(znode: FeatureZnode) -> bytes:
    """Encode the features as Kafka 3.9 does, whichever version was read."""
    return orjson.dumps({
        "version": max(_VERSIONS),
        "status": _ENABLED if znode.is_enabled else _DISABLED,
        "features": {name: {"max_version_level": level} for name, level in znode.features.items()},
    })  # fmt: skip


def _level(path: str, name: str, levels: object, version: int) -> int:
    if not isinstance(levels, dict):
        raise MalformedZnode(path, f'feature "{name[:80]}" must be an object, found {describe(levels)}')
    require_sendable(path, "features", name)
    highest = integer(path, levels, "max_version_level", at_most=INT16_MAX)
    lowest = integer(path, levels, "min_version_level", at_most=INT16_MAX) if version == 1 else 1
    if not 1 <= lowest <= highest:
        raise MalformedZnode(path, f'the levels of feature "{name[:80]}" must be 1 or more, found {describe(levels)}')
    return highest
