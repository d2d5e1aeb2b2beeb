"""Reads the fields of a znode's JSON, and reports in words which one is wrong.

JSON from ZooKeeper is untyped. A value of the wrong type must not reach a decision, and a value that no request field
can carry must not reach a broker. So every field is read by one of these functions, which know the znode's path for the
message.
"""

import re
from typing import Any, Final

import orjson

INT16_MAX: Final = (1 << 15) - 1
INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1
MAX_STRING_BYTES: Final = INT16_MAX
"""The longest string that Kafka's protocol can carry, in bytes of UTF-8."""

_REQUIRED: Final = object()
_SPELLED: Final = re.compile(r"-?[0-9]{1,19}")
"""An integer in a string. No field is longer."""


class MalformedZnode(ValueError):
    """A znode with invalid data. Not retriable: someone has to rewrite or delete the znode."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"znode {path}: {reason}")
        self.path = path
        self.reason = reason


class LaterVersion(MalformedZnode):
    """One of Kontroller's znodes, written by a later version. Its meaning is unknown here, so it is left unchanged."""

    def __init__(self, path: str, version: object) -> None:
        super().__init__(path, f"version {describe(version)} was written by a later Kontroller; run that version")


def json_object(path: str, data: bytes) -> dict[str, Any]:
    """Return the data as a JSON object. Raises `MalformedZnode` if it is not one."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        shown = data[:80].decode(errors="replace")
        raise MalformedZnode(path, f"expected a JSON object, found {shown!r} ({error})") from error
    if not isinstance(value, dict):
        raise MalformedZnode(path, f"expected a JSON object, found {describe(value)}")
    return value


def field(path: str, json: dict[str, Any], name: str, kind: type, default: object = _REQUIRED) -> Any:
    """Return a field of one JSON type. The default replaces an absent or null field. Raises `MalformedZnode`."""
    value = json.get(name)
    if value is None:
        if default is _REQUIRED:
            raise MalformedZnode(path, f'the field "{name}" is missing')
        return default
    if type(value) is not kind:
        raise MalformedZnode(path, f'"{name}" must be {_KINDS[kind]}, found {describe(value)}')
    return value


def integer(path: str, json: dict[str, Any], name: str, *, at_least: int = 0, at_most: int = INT32_MAX) -> int:
    """Return an integer within bounds. Kafka writes some as strings, so those are accepted too. Raises
    `MalformedZnode`."""
    value = json.get(name)
    if isinstance(value, str) and _SPELLED.fullmatch(value):
        value = int(value)
    if type(value) is not int:
        value = field(path, json, name, int)
    if not at_least <= value <= at_most:
        raise MalformedZnode(path, f'"{name}" must be from {at_least} to {at_most}, found {value}')
    return int(value)


def text(path: str, json: dict[str, Any], name: str, default: object = _REQUIRED) -> Any:
    """Return a string that Kafka's protocol can carry. The default replaces an absent or null one. Raises
    `MalformedZnode`."""
    value = field(path, json, name, str, default)
    if isinstance(value, str):
        require_sendable(path, name, value)
    return value


def require_sendable(path: str, name: str, value: str) -> None:
    """Raise `MalformedZnode` if Kafka's protocol cannot carry the string."""
    if len(value.encode()) > MAX_STRING_BYTES:
        raise MalformedZnode(path, f'"{name}" must have at most {MAX_STRING_BYTES} bytes, found {describe(value)}')


def broker_ids(path: str, name: str, value: object) -> tuple[int, ...]:
    """Return a list of broker ids. Raises `MalformedZnode`."""
    if type(value) is not list or not all(type(item) is int for item in value):
        raise MalformedZnode(path, f'"{name}" must be a list of whole numbers, found {describe(value)}')
    if not all(0 <= item <= INT32_MAX for item in value):
        raise MalformedZnode(path, f'"{name}" must have broker ids from 0 to {INT32_MAX}, found {describe(value)}')
    return tuple(value)


def require_version(path: str, json: dict[str, Any], known: int) -> None:
    """Check the version of one of Kontroller's own znodes, which may have none. Raises `LaterVersion` if it is
    unknown."""
    version = json.get("version", known)
    if type(version) is not int or version > known:
        raise LaterVersion(path, version)


def describe(value: object) -> str:
    """Return the value as JSON, shortened for a message."""
    try:
        shown = orjson.dumps(value, default=repr).decode()
    except TypeError:
        return "a value that is nested too deeply to show"
    return shown if len(shown) <= 80 else f"{shown[:80]}..."


_KINDS: Final[dict[type, str]] = {
    int: "a whole number",
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}
