"""A Java properties file: a broker's `server.properties` or a client's configuration."""

import os
from pathlib import Path
from typing import Final

import javaproperties

_MAX_BYTES: Final = 1 << 20


class InvalidProperties(Exception):
    """Unusable properties. The message names the property or the file and says what to change. Not worth a retry."""


def read_properties(file: Path) -> dict[str, str]:
    """Read a file of properties. Raises `InvalidProperties`."""
    try:
        if os.path.getsize(file) > _MAX_BYTES:
            raise InvalidProperties(f"{file} is larger than {_MAX_BYTES} bytes: it is not a properties file")
        with file.open(encoding="utf-8") as lines:
            return dict(javaproperties.load(lines))
    except (OSError, UnicodeDecodeError, javaproperties.InvalidUEscapeError) as error:
        raise InvalidProperties(f"{file} cannot be read as properties: {error}") from error
