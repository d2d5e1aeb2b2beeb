"""Gives messages a `repr` for logs and errors that is short and has no secrets.

Messages appear in unplanned places: in the log line of an unexpected error, in an exception's text, or in that of its
cause. So the policy belongs to the types: every message that is decoded or answered here gets its own `repr`. It shows
only the length of bytes, because salted passwords, HMACs of delegation tokens and SASL messages are bytes. It hides
values of configurations, because key store passwords are among them. It cuts long texts and arrays, because strangers
choose their length.
"""

from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar, cast, get_args

_SECRET_FIELDS: Final = frozenset({"value"})
"""Fields of configuration entries that are hidden. The name of the configuration is in `name`."""
_MOST_PARTS: Final = 5
_MOST_CHARACTERS: Final = 200

T = TypeVar("T")


_redacted: Final[set[object]] = set()


def redact(message: type[T]) -> type[T]:
    """Give a message type, and the types of its parts, a `repr` without secrets. Return the type."""
    if message not in _redacted:
        _redact(message)
    return message


def _redact(kind: Any) -> None:
    if isinstance(kind, type) and is_dataclass(kind) and kind not in _redacted:
        _redacted.add(kind)
        cast(Any, kind).__repr__ = _show
        for field in fields(kind):
            _redact(field.type)
    for argument in get_args(kind):
        _redact(argument)


def _show(message: Any) -> str:
    shown = (f"{field.name}={_value(field.name, getattr(message, field.name))}" for field in fields(message))
    return f"{type(message).__name__}({', '.join(shown)})"


def _value(name: str, value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if name in _SECRET_FIELDS and value is not None:
        return "<not shown>"
    if isinstance(value, tuple):
        parts = [_value("", part) for part in value[:_MOST_PARTS]]
        more = [f"<{len(value) - _MOST_PARTS} more>"] if len(value) > _MOST_PARTS else []
        return f"({', '.join([*parts, *more])})"
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        return f"{value[:_MOST_CHARACTERS]!r}..."
    return repr(value)
