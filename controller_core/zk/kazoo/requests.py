"""ZooKeeper requests that kazoo lacks.

`MultiRead` (opcode 22, since ZooKeeper 3.6) reads hundreds of znodes in one request; with one request each, kazoo reads
about 8,000 a second. `SetWatches` (opcode 101), which ZooKeeper's own client sends after a reconnect, arms any number
of watches as of a zxid. Watches on znodes that changed since that zxid fire at once, so nothing is missed between a
read and the arming of its watches. `AddTreeWatch` (opcode 106) and `RemoveWatches` (18) exist since 3.6.
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from kazoo.exceptions import EXCEPTIONS, NoNodeError, ZookeeperError
from kazoo.protocol import serialization as kazoo

from controller_core.zk.session import ZkNode

MAX_PATHS: Final = 1000
MAX_REQUEST_BYTES: Final = 500_000
"""Half of ZooKeeper's default `jute.maxbuffer`."""

_INT: Final = struct.Struct("!i")
_REPLY_HEADER: Final = struct.Struct("!iqi")
_HEADER: Final = struct.Struct("!iBi")
_HEADED: Final = struct.Struct("!iBii")
"""A header and the number that follows it: a length, a count or an error."""
_STAT: Final = struct.Struct("!qq8xqi8xq16x")
"""The fields of a stat that `ZkNode` has: czxid, mzxid, mtime, version, ephemeral owner."""
_HEADED_BYTES: Final = _HEADED.size
_STAT_BYTES: Final = _STAT.size
_tuple: Final = tuple.__new__
_ERROR: Final = -1
_LAST: Final = _HEADER.pack(-1, 1, -1)
_NO_WATCH: Final = b"\0"


class GetNode:
    """Reads one znode."""

    type = kazoo.GetData.type

    def __init__(self, path: str) -> None:
        self._path = path

    def serialize(self) -> bytes:
        return _string(self._path) + _NO_WATCH

    def deserialize(self, buffer: bytes, offset: int) -> ZkNode:
        return _read_node(buffer, offset)[0]


class GetChildren:
    """Reads the names of a znode's children. With a watcher, it arms a child watch."""

    type = kazoo.GetChildren.type

    def __init__(self, path: str) -> None:
        self._path = path

    def serialize(self) -> bytes:
        return _string(self._path) + _NO_WATCH

    def deserialize(self, buffer: bytes, offset: int) -> tuple[str, ...]:
        return _read_children(buffer, offset)[0]


_Read: TypeAlias = type[GetNode] | type[GetChildren]


class MultiRead:
    """Many reads in one request. The result has each value in order, None if there is no znode, or an error."""

    type = 22

    def __init__(self, read: _Read, paths: Sequence[str]) -> None:
        self._read = read
        self._paths = paths

    def serialize(self) -> bytes:
        parts: list[bytes] = []
        for path in self._paths:
            encoded = path.encode()
            parts += _HEADED.pack(self._read.type, 0, -1, len(encoded)), encoded, _NO_WATCH
        return b"".join((*parts, _LAST))

    def deserialize(self, buffer: bytes, offset: int) -> list[Any]:
        values: list[Any] = []
        headed, stat, node = _HEADED.unpack_from, _STAT.unpack_from, GetNode.type
        for _ in self._paths:
            kind, _, _, number = headed(buffer, offset)
            if kind == node:
                # Like `_read_node`, without function calls, because there may be hundreds of thousands. `_tuple` also
                # avoids the one of `ZkNode`.
                start = offset + _HEADED_BYTES
                end = start + number if number > 0 else start
                czxid, mzxid, mtime_ms, version, owner = stat(buffer, end)
                values.append(_tuple(ZkNode, (buffer[start:end], czxid, mzxid, version, owner, mtime_ms)))
                offset = end + _STAT_BYTES
            else:
                value, offset = _READERS[kind](buffer, offset + _HEADER.size)
                values.append(value)
        return values


class SeenZxid:
    """Asks for the zxid that the server has reached, which is in the header of every response."""

    type = kazoo.Exists.type

    def serialize(self) -> bytes:
        return _string("/") + _NO_WATCH

    def deserialize(self, buffer: bytes, offset: int) -> int:
        _, zxid, _ = _REPLY_HEADER.unpack_from(buffer, offset - _REPLY_HEADER.size)
        return int(zxid)


class SetWatches:
    """Arms data watches on znodes that existed at the zxid, and creation watches on those that did not.

    `arm` is called in kazoo's thread when the request is sent, before ZooKeeper can fire one of the watches.
    """

    type = 101

    def __init__(self, zxid: int, present: Sequence[str], absent: Sequence[str], arm: Callable[[], None]) -> None:
        self._zxid = zxid
        self._present = present
        self._absent = absent
        self._arm = arm

    def serialize(self) -> bytes:
        self._arm()
        children = _strings(())
        return struct.pack("!q", self._zxid) + _strings(self._present) + _strings(self._absent) + children

    def deserialize(self, buffer: bytes, offset: int) -> None:
        return None


class AddTreeWatch:
    """Arms a persistent recursive watch (since ZooKeeper 3.6)."""

    type = 106
    _MODE: Final = 1
    """The mode "persistent recursive"."""

    def __init__(self, path: str, arm: Callable[[], None]) -> None:
        self._path = path
        self._arm = arm

    def serialize(self) -> bytes:
        self._arm()
        return _string(self._path) + _INT.pack(self._MODE)

    def deserialize(self, buffer: bytes, offset: int) -> None:
        return None


class RemoveWatches:
    """Removes all watches of this session on one path."""

    type = 18
    _ANY: Final = 3

    def __init__(self, path: str) -> None:
        self._path = path

    def serialize(self) -> bytes:
        return _string(self._path) + _INT.pack(self._ANY)

    def deserialize(self, buffer: bytes, offset: int) -> None:
        return None


def divide_by_request_size(paths: Sequence[str], max_bytes: int = MAX_REQUEST_BYTES) -> Iterator[slice]:
    """Split the paths into runs that fit one request."""
    start, size = 0, 0
    for index, path in enumerate(paths):
        path_bytes = _HEADED.size + len(path if path.isascii() else path.encode()) + len(_NO_WATCH)
        if index - start == MAX_PATHS or (index > start and size + path_bytes > max_bytes):
            yield slice(start, index)
            start, size = index, 0
        size += path_bytes
    if paths:
        yield slice(start, len(paths))


def absolute_all(paths: Sequence[str], chroot: str) -> Sequence[str]:
    """Return the paths as the server knows them."""
    return [absolute(path, chroot) for path in paths] if chroot else paths


def absolute(path: str, chroot: str) -> str:
    """Return the path as the server knows it."""
    return (chroot if path == "/" else chroot + path) or "/"


def _string(text: str) -> bytes:
    encoded = text.encode()
    return _INT.pack(len(encoded)) + encoded


def _strings(texts: Iterable[str]) -> bytes:
    encoded = [_string(text) for text in texts]
    return _INT.pack(len(encoded)) + b"".join(encoded)


def _read_node(buffer: bytes, offset: int) -> tuple[ZkNode, int]:
    (length,) = _INT.unpack_from(buffer, offset)
    start = offset + _INT.size
    end = start + max(length, 0)
    czxid, mzxid, mtime_ms, version, owner = _STAT.unpack_from(buffer, end)
    return ZkNode(buffer[start:end], czxid, mzxid, version, owner, mtime_ms), end + _STAT.size


def _read_children(buffer: bytes, offset: int) -> tuple[tuple[str, ...], int]:
    (count,) = _INT.unpack_from(buffer, offset)
    offset += _INT.size
    names = []
    for _ in range(count):
        (length,) = _INT.unpack_from(buffer, offset)
        start = offset + _INT.size
        offset = start + length
        names.append(buffer[start:offset].decode())
    return tuple(sorted(names)), offset


def _read_error(buffer: bytes, offset: int) -> tuple[ZookeeperError | None, int]:
    (code,) = _INT.unpack_from(buffer, offset)
    return None if code == NoNodeError.code else EXCEPTIONS[code](), offset + _INT.size


_READERS: Final[dict[int, Callable[[bytes, int], tuple[Any, int]]]] = {
    GetNode.type: _read_node,
    GetChildren.type: _read_children,
    _ERROR: _read_error,
}
