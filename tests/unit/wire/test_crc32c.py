"""The checksum has the values of CRC-32C, whatever holds the data and wherever it begins."""

import random

import pytest

from controller_core.wire.crc32c import crc32c

# RFC 3720, B.4
KNOWN = {
    bytes(32): 0x8A9136AA,
    b"\xff" * 32: 0x62A8AB43,
    bytes(range(32)): 0x46DD794E,
    bytes(range(31, -1, -1)): 0x113FDB5C,
    b"": 0,
}
SOME = random.Random(1).randbytes(70_000)
TABLE = [0] * 256
for _byte in range(256):
    _rest = _byte
    for _ in range(8):
        _rest = (_rest >> 1) ^ (0x82F63B78 if _rest & 1 else 0)
    TABLE[_byte] = _rest


def compute_slowly(data: bytes) -> int:
    """Return the CRC by the definition, byte by byte."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@pytest.mark.parametrize("data", KNOWN, ids=str)
def test_it_has_the_values_of_the_standard(data: bytes) -> None:
    assert crc32c(data) == compute_slowly(data) == KNOWN[data]


@pytest.mark.parametrize("start", range(9))
@pytest.mark.parametrize("length", [0, 1, 3, 7, 8, 9, 61, 1023, 1024, 4096, 65_000])
def test_data_may_begin_anywhere_and_be_of_any_kind(start: int, length: int) -> None:
    data = SOME[start : start + length]
    expected = compute_slowly(data)
    view = memoryview(bytearray(SOME))[start : start + length]
    assert [crc32c(each) for each in (data, bytearray(data), view, view.toreadonly())] == [expected] * 4


@pytest.mark.parametrize("cut", [0, 1, 999, 69_999, 70_000])
def test_pieces_come_to_the_value_of_the_whole(cut: int) -> None:
    assert crc32c(memoryview(SOME)[cut:], crc32c(SOME[:cut])) == crc32c(SOME)
