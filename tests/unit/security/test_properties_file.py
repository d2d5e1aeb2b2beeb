"""Files of properties are read as Java reads them."""

from pathlib import Path

import pytest

from controller_core.security.properties_file import InvalidProperties, read_properties


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "server.properties"


def test_a_file_is_in_iso_8859_1(file: Path) -> None:
    """So a password means the same to Kafka, also one that an editor wrote in UTF-8."""
    file.write_bytes(b"# Schl\xfcssel\nlatin=\xfc\nescaped=\\u00fc\\u2168\nutf-8=\xc3\xbc\n")
    assert read_properties(file) == {"latin": "\xfc", "escaped": "\xfc\u2168", "utf-8": "\xc3\xbc"}


def test_values_have_no_blanks_around_them(file: Path) -> None:
    """Kafka removes them from passwords, too, and keeps the no-break space."""
    file.write_bytes(b"security.protocol=SSL \t\nssl.key.password = a b\xa0 \n")
    assert read_properties(file) == {"security.protocol": "SSL", "ssl.key.password": "a b\xa0"}


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_refused_because_none_of_its_properties_would_be_found(file: Path, encoding: str) -> None:
    file.write_bytes("\ufeffsecurity.protocol=SSL\n".encode(encoding))
    with pytest.raises(InvalidProperties, match="it is in UTF-16"):
        read_properties(file)
