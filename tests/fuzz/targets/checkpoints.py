"""The small files beside a broker's logs. The first byte chooses the kind of file."""

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

from controller_core.model.ids import LeaderEpoch, PartitionId, TopicId, TopicName, TopicPartition
from controller_core.wire.crc32c import crc32c
from replica_broker.log.checkpoints import formats
from replica_broker.log.errors import LogError
from replica_broker.log.producers.snapshot_format import decode_snapshot, encode_snapshot
from tests.fuzz.target import Target

_PATH: Final = Path("a/file")
_HEAD: Final = struct.Struct(">hI")


def _correct_crc(content: bytes) -> bytes:
    checked = content[_HEAD.size :]
    return content[:2] + struct.pack(">I", crc32c(checked)) + checked


READERS: Final[tuple[Callable[[bytes], object], ...]] = (
    lambda content: formats.decode_epochs(_PATH, content),
    lambda content: formats.decode_offsets(_PATH, content),
    lambda content: formats.decode_partition_metadata(_PATH, content),
    lambda content: formats.decode_meta_properties(_PATH, content),
    lambda content: decode_snapshot(_PATH, content, end_offset=100),
    lambda content: decode_snapshot(_PATH, _correct_crc(content), end_offset=100),
)


def examples() -> Iterator[bytes]:
    partition = TopicPartition(TopicName("orders"), PartitionId(3))
    contents = (
        formats.encode_epochs([(LeaderEpoch(1), 0), (LeaderEpoch(4), 17)]),
        formats.encode_offsets({partition: 12}),
        formats.encode_partition_metadata(TopicId(UUID(int=7))),
        formats.encode_meta_properties(3, "a-cluster"),
        encode_snapshot([]),
        _HEAD.pack(1, 0) + struct.pack(">i", 1) + struct.pack(">qhiqiqiq", 7, 1, 3, 12, 0, 99, 0, -1),
    )
    yield from (bytes([number]) + content for number, content in enumerate(contents))


def read(data: bytes) -> None:
    if not data or data[0] >= len(READERS):
        return
    try:
        READERS[data[0]](data[1:])
    except LogError:
        return


TARGET: Final = Target(name="checkpoints", examples=examples, read=read)
