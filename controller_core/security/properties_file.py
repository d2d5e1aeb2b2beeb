"""A Java properties file: a broker's `server.properties` or a client's configuration."""

import os
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeVar

import javaproperties

_Value = TypeVar("_Value", str, object)

_MAX_BYTES: Final = 1 << 20
_BLANKS: Final = bytes(range(33)).decode()
"""The characters that Java removes from the ends of a string."""


class InvalidProperties(Exception):
    """Unusable properties. The message names the property or the file and says what to change. Not worth a retry."""


def read_properties(file: Path) -> dict[str, str]:
    """Read a file of properties, in ISO-8859-1 as Java does. Raises `InvalidProperties`."""
    try:
        if os.path.getsize(file) > _MAX_BYTES:
            raise InvalidProperties(f"{file} is larger than {_MAX_BYTES} bytes: it is not a properties file")
        with file.open("rb") as content:
            if content.peek(2).startswith((BOM_UTF16_BE, BOM_UTF16_LE)):
                raise InvalidProperties(f"{file} cannot be read as properties: it is in UTF-16, so use ISO-8859-1")
            return trim_values(javaproperties.load(content))
    except (OSError, javaproperties.InvalidUEscapeError) as error:
        raise InvalidProperties(f"{file} cannot be read as properties: {error}") from error


def trim_values(properties: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return the properties without blanks around strings. Kafka removes these from all values, including passwords."""
    return {name: value.strip(_BLANKS) if isinstance(value, str) else value for name, value in properties.items()}
