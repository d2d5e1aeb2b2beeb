"""Configurations of topics and brokers, and the notifications of their changes."""

from collections.abc import Mapping
from typing import Final

import orjson

from controller_core.zk import paths
from controller_core.zk.codecs.json_fields import MalformedZnode, field, json_object

_CONFIG_VERSION: Final = 1
_CHANGE_VERSION: Final = 2


def decode_config(data: bytes, path: str = paths.CONFIG) -> dict[str, str]:
    """Return the overrides of one entity. A znode without data has none. `path` is for the message of `MalformedZnode`.

    The message never quotes the data, because it may be a credential.
    """
    if not data:
        return {}
    try:
        config: dict[str, str] = field(path, json_object(path, data), "config", dict)
    except MalformedZnode:
        raise MalformedZnode(path, 'expected a JSON object with an object "config" in it') from None
    for name, value in config.items():
        if not isinstance(value, str):
            raise MalformedZnode(path, f'config "{name[:80]}" must be a string')
    return config


def encode_config(config: Mapping[str, str]) -> bytes:
    return orjson.dumps({"version": _CONFIG_VERSION, "config": dict(config)})


def decode_config_change(data: bytes) -> str:
    """Return the changed entity relative to `/config`, such as `topics/orders`. Raises `MalformedZnode`.

    Notifications of version 1 have the kind and the entity in two fields.
    """
    path = paths.CONFIG_CHANGES
    json = json_object(path, data)
    if "entity_path" in json:
        return str(field(path, json, "entity_path", str))
    return f"{field(path, json, 'entity_type', str)}/{field(path, json, 'entity_name', str)}"


def encode_config_change(entity_path: str) -> bytes:
    """Encode a notification. `entity_path` is relative to `/config`, such as `topics/orders` or `brokers/<default>`."""
    return orjson.dumps({"version": _CHANGE_VERSION, "entity_path": entity_path})
