"""Values in DER are read or refused; no input takes long or raises another error."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_core.security.der import Element, read_element, read_elements, read_object_identifier
from controller_core.security.distinguished_names import read_subject, write_name


def encode(tag: int, *parts: bytes) -> bytes:
    contents = b"".join(parts)
    if len(contents) < 128:
        return bytes((tag, len(contents))) + contents
    length = len(contents).to_bytes((len(contents).bit_length() + 7) // 8)
    return bytes((tag, 0x80 | len(length))) + length + contents


@pytest.mark.parametrize("length", [0, 1, 127, 128, 255, 256, 70_000])
def test_lengths_of_all_forms_are_read(length: int) -> None:
    data = encode(4, bytes(length))
    assert read_elements(data + data) == [Element(4, bytes(length), data)] * 2


@pytest.mark.parametrize(
    ("contents", "numbers"),
    [
        ("550403", "2.5.4.3"),
        ("0992268993f22c640119", "0.9.2342.19200300.100.1.25"),
        ("2a864886f70d010901", "1.2.840.113549.1.9.1"),
        ("883703", "2.999.3"),
        ("00", "0.0"),
        ("4f", "1.39"),
        ("50", "2.0"),
    ],
)
def test_object_identifiers_are_read(contents: str, numbers: str) -> None:
    assert read_object_identifier(read_element(encode(6, bytes.fromhex(contents)))) == numbers


@pytest.mark.parametrize(
    "broken", ["", "0600", "0602", "060180", "0401aa", "1f0100", "0680", "0685000000000100", "06000600"]
)
def test_what_cannot_be_read_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        read_object_identifier(read_element(bytes.fromhex(broken)))


CN = encode(6, bytes.fromhex("550403"))


def name(*values: bytes) -> bytes:
    return encode(0x30, *(encode(0x31, encode(0x30, CN, value)) for value in values))


@pytest.mark.parametrize("tag", [12, 19, 20, 22, 27, 30])
def test_strings_of_every_kind_are_read_as_utf_8(tag: int) -> None:
    assert write_name(name(encode(tag, "s\xfc\xdf".encode()))) == "CN=s\xfc\xdf"
    with pytest.raises(ValueError, match="its CN is not UTF-8: issue it with a UTF8String"):
        write_name(name(encode(tag, b"s\xfc")))


@pytest.mark.parametrize(("tag", "shown"), [(28, "CN=#1c0161"), (4, "CN=#040161"), (0x8C, "CN=#8c0161")])
def test_other_values_are_written_as_bytes(tag: int, shown: str) -> None:
    assert write_name(name(encode(tag, b"a"))) == shown


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (read_subject, write_name):
        try:
            read(data)
        except ValueError:
            continue
