"""Reads the fields of a znode's JSON, and says in words which one is wrong.

JSON out of ZooKeeper is not typed, and a value of the wrong type must not travel into a decision. Every field is
therefore read through one of these functions, which know the znode's path for the message.
"""

from typing import Any, Final

import orjson

_REQUIRED: Final = object()


class MalformedZnode(ValueError):
    """A znode whose data makes no sense. Not retriable: someone has to rewrite or delete the znode."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"znode {path}: {reason}")
        self.path = path
        self.reason = reason


def json_object(path: str, data: bytes) -> dict[str, Any]:
    """The data as a JSON object; raises `MalformedZnode` where it is none."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        shown = data[:80].decode(errors="replace")
        raise MalformedZnode(path, f"expected a JSON object, found {shown!r} ({error})") from error
    if not isinstance(value, dict):
        raise MalformedZnode(path, f"expected a JSON object, found {described(value)}")
    return value


def field(path: str, json: dict[str, Any], name: str, kind: type, default: object = _REQUIRED) -> Any:
    """A field of one JSON type; the default stands for an absent or null one."""
    value = json.get(name)
    if value is None:
        if default is _REQUIRED:
            raise MalformedZnode(path, f'the field "{name}" is missing')
        return default
    if type(value) is not kind:
        raise MalformedZnode(path, f'"{name}" must be {_KINDS[kind]}, found {described(value)}')
    return value


def integer(path: str, json: dict[str, Any], name: str) -> int:
    """A whole number; Kafka writes some as strings, so those are accepted where they spell one."""
    value = json.get(name)
    if type(value) is int:
        return value
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            pass
    return int(field(path, json, name, int))


def integers(path: str, name: str, value: object) -> tuple[int, ...]:
    """A list of whole numbers."""
    if type(value) is not list or not all(type(item) is int for item in value):
        raise MalformedZnode(path, f'"{name}" must be a list of whole numbers, found {described(value)}')
    return tuple(value)


def described(value: object) -> str:
    """The value as JSON, cut to what fits a message."""
    shown = orjson.dumps(value, default=repr).decode()
    return shown if len(shown) <= 80 else f"{shown[:80]}..."


_KINDS: Final[dict[type, str]] = {
    int: "a whole number",
    str: "a string",
    list: "a list",
    dict: "an object",
}
