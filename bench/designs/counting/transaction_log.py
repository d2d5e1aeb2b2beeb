"""ZooKeeper's transaction log, read while the server writes it: each write with its session, time and changes.

It is the server's own record, so it is exact, and reading it costs the server nothing. Entries are in the format of
`org.apache.zookeeper.server.persistence.FileTxnLog`. Zeros follow the last one, because the file is preallocated.
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Change = Literal["create", "delete", "set data", "check"]

_FILE_HEADER_BYTES: Final = 16
_ENTRY: Final = struct.Struct(">qi")
_HEADER: Final = struct.Struct(">qiqqi")
_END: Final = b"B"
_OPEN_SESSION: Final = -10
_CLOSE_SESSION: Final = -11
_REFUSED: Final = -1
_MULTI: Final = 14
_CHANGES: Final[dict[int, Change]] = {1: "create", 2: "delete", 5: "set data", 13: "check", 15: "create"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """The change of one znode in a transaction."""

    change: Change
    path: str
    data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """An atomic write. The opening or closing of a session also counts."""

    session: int
    time_ms: int
    """The time by ZooKeeper's clock."""
    operations: tuple[Operation, ...] = ()
    """The operations. The end of a session deletes its ephemeral znodes."""
    is_refused: bool = False
    """True if another session was faster, or the znode does not exist: nothing was changed."""
    is_of_sessions: bool = False


class TransactionLog:
    """The log of a server that makes no snapshots: one file, from its first transaction on."""

    def __init__(self, data_folder: Path) -> None:
        self._folder = data_folder / "version-2"
        self._position = _FILE_HEADER_BYTES

    def read(self) -> Iterator[Transaction]:
        """Yield the transactions since the last call. Raises `ValueError` if there are several files."""
        files = sorted(self._folder.glob("log.*"))
        if len(files) > 1:
            raise ValueError(f"{self._folder} has {len(files)} logs: let the server make no snapshots")
        for file in files:
            with file.open("rb") as log:
                log.seek(self._position)
                yield from self._entries(log.read)

    def _entries(self, read: Callable[[int], bytes]) -> Iterator[Transaction]:
        while len(head := read(_ENTRY.size)) == _ENTRY.size:
            _, length = _ENTRY.unpack(head)
            content = read(length + len(_END)) if length > 0 else b""
            if content[length:] != _END or length == 0:
                return  # it is being written
            self._position += _ENTRY.size + length + len(_END)
            yield decode_transaction(content[:length])


def decode_transaction(entry: bytes) -> Transaction:
    """Return the transaction of an entry, without operations of kinds that `Change` lacks."""
    session, _, _, time_ms, kind = _HEADER.unpack_from(entry)
    record = _Record(entry, _HEADER.size)
    if kind in (_OPEN_SESSION, _CLOSE_SESSION):
        gone = record.strings() if kind == _CLOSE_SESSION else ()
        deleted = tuple(Operation(change="delete", path=path) for path in gone)
        return Transaction(session=session, time_ms=time_ms, operations=deleted, is_of_sessions=True)
    parts = (
        [(record.int(), _Record(record.buffer())) for _ in range(record.int())] if kind == _MULTI else [(kind, record)]
    )
    return Transaction(
        session=session,
        time_ms=time_ms,
        operations=tuple(part.operation(_CHANGES[each]) for each, part in parts if each in _CHANGES),
        is_refused=any(each == _REFUSED for each, _ in parts),
    )


class _Record:
    """Consecutive fields in the format of ZooKeeper's jute."""

    def __init__(self, content: bytes, position: int = 0) -> None:
        self._content = content
        self._position = position

    def int(self) -> int:
        (value,) = struct.unpack_from(">i", self._content, self._position)
        self._position += 4
        return int(value)

    def buffer(self) -> bytes:
        length = max(0, self.int())
        self._position += length
        return self._content[self._position - length : self._position]

    def strings(self) -> tuple[str, ...]:
        return tuple(self.buffer().decode() for _ in range(max(0, self.int())))

    def operation(self, change: Change) -> Operation:
        path = self.buffer().decode()
        data = self.buffer() if change in ("create", "set data") else b""
        return Operation(change=change, path=path, data=data)
