"""Compressed records of any client are read within a bound of memory."""

import struct
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replica_broker.log import compression as module
from replica_broker.log.compression import compress, decompress
from replica_broker.log.errors import CorruptBatch
from replica_broker.log.record_batches import Compression
from tests.unit.replica_broker.log.batches import compress_records


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("records", [b"", b"a", b"ab" * 1_000_000], ids=["nothing", "little", "much"])
def test_what_was_compressed_is_decompressed(compression: Compression, records: bytes) -> None:
    assert decompress(compression, compress_records(compression, records)) == records


@given(st.sampled_from(Compression), st.binary(max_size=300_000))
def test_what_is_compressed_here_is_decompressed_here(compression: Compression, records: bytes) -> None:
    assert decompress(compression, compress(compression, records)) == records


def test_blocks_of_lz4_do_not_depend_on_each_other_as_java_s_clients_want_it() -> None:
    framed = compress(Compression.LZ4, bytes(range(256)) * 1_000)
    assert framed[:7].hex() == "04224d18604082"
    (length,) = struct.unpack_from("<I", framed, 7)
    assert len(cramjam.lz4.decompress_block(framed[11 : 11 + length], output_len=1 << 16)) == 1 << 16


def test_a_bare_block_of_snappy_is_read_too() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(b"abc" * 100))) == b"abc" * 100


@pytest.mark.parametrize("compression", [each for each in Compression if each is not Compression.NONE])
def test_a_few_bytes_that_stand_for_too_many_are_refused(compression: Compression) -> None:
    with pytest.raises(CorruptBatch):
        decompress(compression, compress_records(compression, bytes((1 << 20) + 2)), most_bytes=1 << 20)


@given(
    st.sampled_from([each for each in Compression if each is not Compression.NONE]),
    st.binary(max_size=200),
    st.booleans(),
)
def test_bytes_of_anybody_are_decompressed_or_refused(compression: Compression, data: bytes, is_framed: bool) -> None:
    with suppress(CorruptBatch):
        assert len(decompress(compression, b"\x82SNAPPY\0" + data if is_framed else data)) <= module.MOST_BYTES
