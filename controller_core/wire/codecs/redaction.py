"""How messages show themselves in logs and in the texts of errors: without secrets, and in little room.

Messages are put into words where nobody thinks of what is in them: in the log line of an unexpected error, in the text of
an exception, in that of another which was its cause. So the policy belongs to the types: every message that is read or
answered here has a `repr` of its own. Bytes are shown by their number alone: salted passwords, HMACs of delegation tokens
and what SASL sends are bytes. Values of configurations are not shown: among them are the passwords of key stores. Of long
texts and arrays only the beginnings are shown, because a stranger decides how long they are.
"""

from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar, cast, get_args

_SECRET_FIELDS: Final = frozenset({"value"})
"""Of configurations' entries: what it is of is in `name`."""
_MOST_PARTS: Final = 5
_MOST_CHARACTERS: Final = 200

T = TypeVar("T")


_redacted: Final[set[object]] = set()


def redacted(message: type[T]) -> type[T]:
    """The type of a message: its values, and the parts that they are made of, show themselves so from now on."""
    if message not in _redacted:
        _redact(message)
    return message


def _redact(kind: Any) -> None:
    if isinstance(kind, type) and is_dataclass(kind) and kind not in _redacted:
        _redacted.add(kind)
        cast(Any, kind).__repr__ = _shown
        for field in fields(kind):
            _redact(field.type)
    for argument in get_args(kind):
        _redact(argument)


def _shown(message: Any) -> str:
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
