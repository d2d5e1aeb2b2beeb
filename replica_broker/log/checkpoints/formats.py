"""The small files of a log directory, in Kafka's formats, so that stock brokers and this one can exchange directories.

A file may have any content: numbers are checked, and invalid content raises `MalformedFile` with the file and the
reason.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

import javaproperties

from controller_core.model.ids import LeaderEpoch, PartitionId, TopicId, TopicName, TopicPartition
from replica_broker.disk.disk import DiskPath
from replica_broker.log.errors import MalformedFile
from replica_broker.log.record_batches import INT32_MAX, MOST_OFFSET

_VERSION: Final = "0"
_NUMBER: Final = re.compile(r"[0-9]{1,19}")
_TOPIC_ID: Final = re.compile(r"version: 0\ntopic_id: ([A-Za-z0-9_-]{21}[AQgw])\s*")
_OFFSETS_LINE: Final = re.compile(r"([a-zA-Z0-9._-]{1,249}) ([0-9]{1,10}) ([0-9]{1,19})")
_EPOCHS_LINE: Final = re.compile(r"([0-9]{1,10}) ([0-9]{1,19})")


def encode_epochs(entries: Iterable[tuple[LeaderEpoch, int]]) -> bytes:
    return _lines(f"{epoch} {offset}" for epoch, offset in entries)


def decode_epochs(path: DiskPath, content: bytes) -> list[tuple[LeaderEpoch, int]]:
    """Return the epochs and their start offsets, both rising. Raises `MalformedFile`."""
    found: list[tuple[LeaderEpoch, int]] = []
    for match in _matches(path, content, _EPOCHS_LINE):
        epoch, offset = _parse_number(path, match[1], INT32_MAX), _parse_number(path, match[2], MOST_OFFSET)
        if found and (epoch <= found[-1][0] or offset <= found[-1][1]):
            raise MalformedFile(f"{path}: epoch {epoch} at {offset} does not follow {found[-1][0]} at {found[-1][1]}")
        found.append((LeaderEpoch(epoch), offset))
    return found


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    return _lines(f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))


def decode_offsets(path: DiskPath, content: bytes) -> dict[TopicPartition, int]:
    """Return the offset of each partition. Raises `MalformedFile`."""
    return {
        TopicPartition(TopicName(match[1]), PartitionId(_parse_number(path, match[2], INT32_MAX))): _parse_number(
            path, match[3], MOST_OFFSET
        )
        for match in _matches(path, content, _OFFSETS_LINE)
    }


def encode_partition_metadata(topic_id: TopicId) -> bytes:
    return f"version: 0\ntopic_id: {urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')}".encode()


def decode_partition_metadata(path: DiskPath, content: bytes) -> TopicId:
    """Return the topic id of a log. Raises `MalformedFile`."""
    match = _TOPIC_ID.fullmatch(_text(path, content))
    if match is None:
        raise MalformedFile(f"{path}: expected a version 0 and a topic id, found {content[:80]!r}")
    return TopicId(UUID(bytes=urlsafe_b64decode(f"{match[1]}==")))


def encode_meta_properties(broker_id: int, cluster_id: str) -> bytes:
    properties = {"version": "0", "broker.id": str(broker_id), "cluster.id": cluster_id}
    return javaproperties.dumps(properties, timestamp=False).encode()


def decode_meta_properties(path: DiskPath, content: bytes) -> dict[str, str]:
    """Return the properties that name the directory's owner. Raises `MalformedFile`."""
    try:
        return dict(javaproperties.loads(_text(path, content)))
    except javaproperties.InvalidUEscapeError as error:
        raise MalformedFile(f"{path}: {error}") from error


def _lines(lines: Iterable[str]) -> bytes:
    entries = list(lines)
    return "".join(f"{line}\n" for line in (_VERSION, str(len(entries)), *entries)).encode()


def _matches(path: DiskPath, content: bytes, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    version, count, *entries = [*_text(path, content).split("\n"), "", ""]
    if version != _VERSION:
        raise MalformedFile(f"{path}: expected version {_VERSION}, found {version[:40]!r}")
    entries = [entry for entry in entries if entry]
    if not _NUMBER.fullmatch(count) or int(count) != len(entries):
        raise MalformedFile(f"{path}: its header says {count[:40]!r} entries, but it has {len(entries)}")
    matches = []
    for entry in entries:
        match = pattern.fullmatch(entry)
        if match is None:
            raise MalformedFile(f"{path}: the entry {entry[:80]!r} is invalid")
        matches.append(match)
    return matches


def _parse_number(path: DiskPath, number: str, at_most: int) -> int:
    value = int(number)
    if value > at_most:
        raise MalformedFile(f"{path}: {value} is more than {at_most}")
    return value


def _text(path: DiskPath, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise MalformedFile(f"{path}: it is not UTF-8 text ({error})") from error
