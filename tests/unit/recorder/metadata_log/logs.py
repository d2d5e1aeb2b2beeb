"""Writes the bytes of a metadata log as controllers do, by the schemas that Kafka publishes."""

import struct
from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

from controller_core.wire.crc32c import crc32c

ORDERS: Final = UUID(int=(7 << 65) + 1)
"""The id of a topic."""
NO_OP: Final = b"\x01\x14\x00\x00"
BEGIN: Final = b"\x01\x17\x00\x00"
END: Final = b"\x01\x18\x00\x00"
ABORT: Final = b"\x01\x19\x00\x00"
UNKNOWN: Final = b"\x01\x63\x00\x00"


def uvarint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*written, number))


def varint(number: int) -> bytes:
    return uvarint(number << 1 if number >= 0 else (-number << 1) - 1)


def text(said: str | None) -> bytes:
    return b"\0" if said is None else uvarint(len(said.encode()) + 1) + said.encode()


def numbers(brokers: Sequence[int]) -> bytes:
    return uvarint(len(brokers) + 1) + struct.pack(f">{len(brokers)}i", *brokers)


def tags(tagged: Mapping[int, bytes]) -> bytes:
    parts = [uvarint(tag) + uvarint(len(content)) + content for tag, content in sorted(tagged.items())]
    return uvarint(len(parts)) + b"".join(parts)


def frame(api_key: int, version: int, *parts: bytes) -> bytes:
    return b"\x01" + uvarint(api_key) + uvarint(version) + b"".join(parts)


def topic(name: str = "orders", topic_id: UUID = ORDERS) -> bytes:
    return frame(2, 0, text(name), topic_id.bytes, tags({}))


def remove_topic(topic_id: UUID = ORDERS) -> bytes:
    return frame(9, 0, topic_id.bytes, tags({}))


def partition(
    number: int, replicas: Sequence[int], *, leader: int | None = None, topic_id: UUID = ORDERS, version: int = 2
) -> bytes:
    led_by = replicas[0] if leader is None else leader
    directories = uvarint(len(replicas) + 1) + bytes(16 * len(replicas)) if version >= 1 else b""
    return frame(
        3, version, struct.pack(">i", number), topic_id.bytes, numbers(replicas), numbers(replicas), numbers([]),
        numbers([]), struct.pack(">iii", led_by, 0, 0), directories, tags({}),
    )  # fmt: skip


def partition_change(
    number: int,
    *,
    isr: Sequence[int] | None = None,
    leader: int | None = None,
    replicas: Sequence[int] | None = None,
    removing: Sequence[int] | None = None,
    adding: Sequence[int] | None = None,
    recovery_state: int | None = None,
    topic_id: UUID = ORDERS,
) -> bytes:
    lists = {0: isr, 2: replicas, 3: removing, 4: adding}
    tagged = {tag: numbers(brokers) for tag, brokers in lists.items() if brokers is not None}
    if leader is not None:
        tagged[1] = struct.pack(">i", leader)
    if recovery_state is not None:
        tagged[5] = struct.pack(">b", recovery_state)
    tagged[9] = b"of a later release"
    return frame(5, 2, struct.pack(">i", number), topic_id.bytes, tags(tagged))


def register(broker: int, epoch: int, *, rack: str | None = None, is_fenced: bool = True, version: int = 3) -> bytes:
    endpoint = text("PLAINTEXT") + text(f"kafka-{broker}") + struct.pack(">Hh", 9092, 0) + tags({})
    feature = text("metadata.version") + struct.pack(">hh", 7, 29) + tags({})
    directories = uvarint(2) + bytes(16)  # all of them since version 3, and those that are cordoned since version 4
    return frame(
        0, version, struct.pack(">i", broker), b"\0" if version >= 2 else b"", bytes(16), struct.pack(">q", epoch),
        uvarint(2), endpoint, uvarint(2), feature, text(rack), bytes([is_fenced]), b"\0" if version >= 1 else b"",
        tags(dict.fromkeys(range(max(0, version - 2)), directories)),
    )  # fmt: skip


def unregister(broker: int, epoch: int = 0) -> bytes:
    return frame(1, 0, struct.pack(">iq", broker, epoch), tags({}))


def fence(broker: int, epoch: int = 0) -> bytes:
    return frame(7, 0, struct.pack(">iq", broker, epoch), tags({}))


def unfence(broker: int, epoch: int = 0) -> bytes:
    return frame(8, 0, struct.pack(">iq", broker, epoch), tags({}))


def registration_change(
    broker: int, *, fenced: int | None = None, shutting_down: int | None = None, version: int = 1
) -> bytes:
    tagged = {tag: struct.pack(">b", value) for tag, value in ((0, fenced), (1, shutting_down)) if value is not None}
    tagged |= {tag: uvarint(2) + bytes(16) for tag in range(2, version + 1)}
    return frame(17, version, struct.pack(">iq", broker, 0), tags(tagged))


def config(resource_type: int, resource: str, name: str, value: str | None) -> bytes:
    return frame(4, 0, struct.pack(">b", resource_type), text(resource), text(name), text(value), tags({}))


def feature(name: str, level: int) -> bytes:
    return frame(12, 0, text(name), struct.pack(">h", level), tags({}))


def batch(
    base_offset: int,
    *values: bytes,
    epoch: int = 1,
    time_ms: int = 1_000,
    keys: Sequence[bytes | None] | None = None,
    attributes: int = 0,
) -> bytes:
    """A batch of records; with keys it is one of control records."""
    content, kind = body(*values, keys=keys), attributes | (0x20 if keys else 0)
    return _batch(base_offset, content, count=len(values), epoch=epoch, time_ms=time_ms, attributes=kind)


def body(*values: bytes, keys: Sequence[bytes | None] | None = None) -> bytes:
    """The records of a batch."""
    pairs = zip(keys or [None] * len(values), values, strict=True)
    return b"".join(_record(number, key, value) for number, (key, value) in enumerate(pairs))


def pack_record(base_offset: int, compressed: bytes) -> bytes:
    """A batch of one record, by gzip."""
    return _batch(base_offset, compressed, count=1, epoch=1, time_ms=1_000, attributes=1)


def leader_change(base_offset: int, leader: int, *, epoch: int, time_ms: int = 1_000) -> bytes:
    """The first batch of an epoch."""
    value = struct.pack(">hi", 0, leader) + uvarint(1) + uvarint(1) + tags({})
    return batch(base_offset, value, epoch=epoch, time_ms=time_ms, keys=[struct.pack(">hh", 0, 2)])


def kraft_version(base_offset: int, level: int, *, epoch: int = 1) -> bytes:
    value = struct.pack(">hh", 0, level) + tags({})
    return batch(base_offset, value, epoch=epoch, keys=[struct.pack(">hh", 0, 5)])


def _batch(base_offset: int, content: bytes, *, count: int, epoch: int, time_ms: int, attributes: int) -> bytes:
    described = struct.pack(">hiqqqhii", attributes, count - 1, time_ms, time_ms, -1, -1, -1, count)
    behind_crc = described + content
    head = struct.pack(">ibI", epoch, 2, crc32c(behind_crc))
    return struct.pack(">qi", base_offset, len(head) + len(behind_crc)) + head + behind_crc


def _record(number: int, key: bytes | None, value: bytes) -> bytes:
    content = b"\0" + varint(0) + varint(number) + _nullable(key) + _nullable(value) + uvarint(0)
    return varint(len(content)) + content


def _nullable(content: bytes | None) -> bytes:
    return varint(-1) if content is None else varint(len(content)) + content
