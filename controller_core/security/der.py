"""Reads values in DER (X.690), as certificates have them: tags below 31, and definite lengths."""

from typing import Final, NamedTuple

_LONG: Final = 0x80
_HIGH_TAG: Final = 0x1F
_CONSTRUCTED: Final = 0x20
_MOST_LENGTH_BYTES: Final = 4
SEQUENCE: Final = 0x30
SET: Final = 0x31
OBJECT_IDENTIFIER: Final = 0x06


class Element(NamedTuple):
    """A value. `tag`: the first byte, with the class of the tag. `encoded`: the value with its tag and length."""

    tag: int
    contents: bytes
    encoded: bytes

    def parts(self, tag: int) -> "list[Element]":
        """Return the values within this one, which must have the tag. Raises `ValueError`."""
        if self.tag != tag or not tag & _CONSTRUCTED:
            raise ValueError(f"expected the tag {tag:#04x}, found {self.tag:#04x}")
        return read_elements(self.contents)


def read_elements(data: bytes) -> list[Element]:
    """Return the values that follow each other. Raises `ValueError`."""
    found: list[Element] = []
    start = 0
    while start < len(data):
        position, length = _read_head(data, start)
        end = position + length
        if end > len(data):
            raise ValueError(f"a value says {length} bytes, but {len(data) - position} are there")
        found.append(Element(data[start], data[position:end], data[start:end]))
        start = end
    return found


def read_element(data: bytes) -> Element:
    """Return the only value. Raises `ValueError`."""
    found = read_elements(data)
    if len(found) != 1:
        raise ValueError(f"expected one value, found {len(found)}")
    return found[0]


def read_object_identifier(element: Element) -> str:
    """Return the numbers of an object identifier, with dots between them. Raises `ValueError`."""
    contents = element.contents
    if element.tag != OBJECT_IDENTIFIER or not contents or contents[-1] & _LONG:
        raise ValueError("an object identifier cannot be read")
    numbers: list[int] = []
    number = 0
    for byte in contents:
        number = number << 7 | byte & ~_LONG
        if not byte & _LONG:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def _read_head(data: bytes, start: int) -> tuple[int, int]:
    """Return the place of the contents, and their length."""
    if start + 2 > len(data):
        raise ValueError("a value ends within its tag or length")
    if data[start] & _HIGH_TAG == _HIGH_TAG:
        raise ValueError("tags above 30 are not supported")
    length, position = data[start + 1], start + 2
    if length < _LONG:
        return position, length
    count = length - _LONG
    if not 0 < count <= _MOST_LENGTH_BYTES or position + count > len(data):
        raise ValueError("a length cannot be read")
    return position + count, int.from_bytes(data[position : position + count])
