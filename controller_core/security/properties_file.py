"""A file of properties, as Java writes it: what a broker's `server.properties` or a client's configuration is."""

import os
from pathlib import Path
from typing import Final

import javaproperties

_MAX_BYTES: Final = 1 << 20


class InvalidProperties(Exception):
    """Properties that cannot be used; the message names the property, or the file, and says what to change. Fatal."""


def read_properties(file: Path) -> dict[str, str]:
    """Raises `InvalidProperties`."""
    try:
        if os.path.getsize(file) > _MAX_BYTES:
            raise InvalidProperties(f"{file} is larger than {_MAX_BYTES} bytes: it is no file of properties")
        with file.open(encoding="utf-8") as lines:
            return dict(javaproperties.load(lines))
    except (OSError, UnicodeDecodeError, javaproperties.InvalidUEscapeError) as error:
        raise InvalidProperties(f"{file} cannot be read as properties: {error}") from error
