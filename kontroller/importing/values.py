"""Values as people and tools write them, turned into the text that Kafka parses the same way.

Readers of YAML 1.1, YAML 1.2 and JSON disagree about the types of `yes`, `010` and `1_048_576`. So sources keep a scalar
as its text, and the type that the table of topic configurations has for the key decides the meaning: 6.048e+08 is a
whole number for retention.ms, and 2.10 is a text for message.format.version."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from controller_core.model.topics.topic_configs import TOPIC_CONFIGS, ConfigType

_LONG_MAX: Final = 2**63 - 1
_DIGITS: Final = 20
_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]+")
_LEADING_ZERO: Final = re.compile(r"[+-]?0[0-9_]+")
_OTHER_BASE: Final = re.compile(r"[+-]?0[xob][0-9a-fA-F_]+")
_BOOLEANS: Final = {
    **dict.fromkeys(("true", "yes", "on", "y"), "true"),
    **dict.fromkeys(("false", "no", "off", "n"), "false"),
}
"""The booleans of YAML 1.1. YAML 1.2 and Kafka know only true and false."""


class Plain(str):
    """A scalar that was written without quotes, so its type depends on the reader."""

    __slots__ = ()


class Unreadable(Exception):
    """A value has no meaning, or several. The message says what to write."""


def is_true(text: str | None) -> bool:
    """Return True if a reader of YAML 1.1 or 1.2 may take the text for true."""
    return text is not None and _BOOLEANS.get(text.lower()) == "true"


def read_text(value: object) -> str:
    """Return a scalar as text. Raises `Unreadable` for a list or a mapping."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | Mapping) or value is None:
        raise Unreadable("write one value, not a list or a mapping")
    return str(value)


def read_count(value: object) -> int | None:
    """Return a number of partitions or replicas; None if it is left to the brokers, as -1 says.

    Raises `Unreadable`."""
    if value is None:
        return None
    text = normalize_number(value)
    if not _WHOLE_NUMBER.fullmatch(text) or len(text) > _DIGITS:
        raise Unreadable(f"{text} is no number")
    number = int(text)
    if number == -1:
        return None
    if number < 1:
        raise Unreadable(f"{text} is too small: write 1 or more")
    return number


def normalize_config(key: str, value: object) -> str:
    """Return the value of a known key as Kafka's text for it. Raises `Unreadable`.

    A value that makes no sense stays as it is, and the table of topic configurations refuses it."""
    type_ = TOPIC_CONFIGS[key].type if key in TOPIC_CONFIGS else ConfigType.STRING
    if isinstance(value, list) and type_ is ConfigType.LIST:
        return ",".join(read_text(each).strip() for each in value)
    if type_ in (ConfigType.INT, ConfigType.LONG):
        return normalize_number(value)
    text = read_text(value).strip()
    return _BOOLEANS.get(text.lower(), text) if type_ is ConfigType.BOOLEAN else text


def normalize_number(value: object) -> str:
    """Return a whole number in decimal digits, or the text as it is if it is no whole number. Raises `Unreadable`."""
    text = read_text(value).strip()
    if isinstance(value, Plain) and _LEADING_ZERO.fullmatch(text):
        raise Unreadable(f"{text} is an octal number for some readers of YAML: write it without the leading zero")
    if _WHOLE_NUMBER.fullmatch(text):
        return text
    try:
        if _OTHER_BASE.fullmatch(text):
            return str(int(text.replace("_", ""), 0))
        number = Decimal(text.replace("_", ""))
    except (InvalidOperation, ValueError):
        return text
    if not number.is_finite() or number.adjusted() > _DIGITS or number != number.to_integral_value():
        return text
    # A tool that keeps numbers as floats rounds the largest long up by one.
    return str(_LONG_MAX if number > _LONG_MAX and float(number) == float(_LONG_MAX) else int(number))
