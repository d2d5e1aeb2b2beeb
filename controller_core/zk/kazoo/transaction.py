"""ZooKeeper's transaction (opcode 14) as a kazoo request, for transactions of a thousand operations.

kazoo's own version makes several objects per operation, in each direction. Here an operation is a few pieces of bytes,
and only the informative parts of the answer are read: the failed operation, and the names of sequential znodes. The
bytes equal those of kazoo; a test compares the two.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kazoo.exceptions import EXCEPTIONS, RolledBackError, RuntimeInconsistency, ZookeeperError
from kazoo.protocol import serialization as kazoo

from controller_core.zk.secured.acls import OPEN_ACLS, ZnodeAcls
from controller_core.zk.session import Create, CreateMode, Delete, SetData, WriteOp

_INT: Final = struct.Struct("!i")
_HEADER: Final = struct.Struct("!iBi")
_STAT_BYTES: Final = 68
_ERROR: Final = -1
_CREATE: Final = _HEADER.pack(kazoo.Create.type, 0, -1)
_SET_DATA: Final = _HEADER.pack(kazoo.SetData.type, 0, -1)
_DELETE: Final = _HEADER.pack(kazoo.Delete.type, 0, -1)
_CHECK: Final = _HEADER.pack(kazoo.CheckVersion.type, 0, -1)
_LAST: Final = _HEADER.pack(-1, 1, -1)
_FLAGS: Final = {CreateMode.PERSISTENT: 0, CreateMode.EPHEMERAL: 1, CreateMode.PERSISTENT_SEQUENTIAL: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAt:
    """The operation that made a transaction fail. Those before it were rolled back, those after it not tried."""

    index: int
    error: ZookeeperError


class Transaction:
    """A transaction within a chroot. The answer is a list: one `FailedAt`, or the paths of its sequential creates."""

    type = kazoo.Transaction.type

    def __init__(self, ops: Sequence[WriteOp], chroot: str, acls: ZnodeAcls = OPEN_ACLS) -> None:
        self._ops = ops
        self._chroot = chroot
        self._acls = acls

    def serialize(self) -> bytes:
        parts: list[bytes] = []
        for op in self._ops:
            path = ((self._chroot if op.path == "/" else self._chroot + op.path) or "/").encode()
            if isinstance(op, SetData):
                size = _INT.pack(len(op.data))
                parts += (_SET_DATA, _INT.pack(len(path)), path, size, op.data, _INT.pack(op.version))
            elif isinstance(op, Create):
                size, rest = _INT.pack(len(op.data)), self._acls.find_acl(op.path) + _INT.pack(_FLAGS[op.mode])
                parts += (_CREATE, _INT.pack(len(path)), path, size, op.data, rest)
            else:
                header = _DELETE if isinstance(op, Delete) else _CHECK
                parts += (header, _INT.pack(len(path)), path, _INT.pack(op.version))
        parts.append(_LAST)
        return b"".join(parts)

    def deserialize(self, buffer: bytes, offset: int) -> list[FailedAt | str]:
        kind, is_last, _ = _HEADER.unpack_from(buffer, offset)
        if kind == _ERROR and not is_last:
            return [_failure(buffer, offset)]
        if not any(isinstance(op, Create) and op.mode is CreateMode.PERSISTENT_SEQUENTIAL for op in self._ops):
            return []
        return self._sequential(buffer, offset)

    def _sequential(self, buffer: bytes, offset: int) -> list[FailedAt | str]:
        names: list[FailedAt | str] = []
        for op in self._ops:
            offset += _HEADER.size
            if isinstance(op, SetData):
                offset += _STAT_BYTES
            elif isinstance(op, Create):
                (length,) = _INT.unpack_from(buffer, offset)
                start = offset + _INT.size
                offset = start + length
                if op.mode is CreateMode.PERSISTENT_SEQUENTIAL:
                    names.append(buffer[start:offset].decode())
        return names


def _failure(buffer: bytes, offset: int) -> FailedAt:
    """Return the cause of a refused transaction. Its answer has one error per operation, and one of them is the
    cause."""
    index = 0
    while True:
        (code,) = _INT.unpack_from(buffer, offset + _HEADER.size)
        error = EXCEPTIONS[code]()
        if not isinstance(error, RolledBackError | RuntimeInconsistency):
            return FailedAt(index=index, error=error)
        offset += _HEADER.size + _INT.size
        index += 1
