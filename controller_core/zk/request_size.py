"""Computes the exact size of a transaction on its way to ZooKeeper.

A server closes the connection if a request exceeds its `jute.maxbuffer` (0xfffff bytes unless configured). It checks
the length in front of the request, which counts everything after it, with the headers of the request and its
operations. The data that a server adds for its transaction log has a limit of its own
(`zookeeper.jute.maxbuffer.extrasize`, by default as large as the first one since 3.5.7), so a request that passes the
first check is logged. Answers are not limited.
"""

from collections.abc import Sequence
from typing import Final

from controller_core.zk.secured.acls import OPEN_ACLS, ZnodeAcls
from controller_core.zk.session import Check, Create, Delete, FailedOp, SetData, TooLarge, WriteOp

DEFAULT_JUTE_MAXBUFFER_BYTES: Final = 0xFFFFF
"""ZooKeeper's default, one byte less than 1 MiB."""

_REQUEST_HEADER: Final = 8
_OPERATION_HEADER: Final = 9
"""Before every operation, and once more after the last one."""
_LENGTH: Final = 4
_VERSION: Final = 4
_FLAGS: Final = 4
_FRAME: Final = _REQUEST_HEADER + _OPERATION_HEADER

_BESIDE_PATH_DATA_AND_ACL: Final[dict[type[WriteOp], int]] = {
    Create: _OPERATION_HEADER + _LENGTH + _LENGTH + _FLAGS,
    SetData: _OPERATION_HEADER + _LENGTH + _LENGTH + _VERSION,
    Delete: _OPERATION_HEADER + _LENGTH + _VERSION,
    Check: _OPERATION_HEADER + _LENGTH + _VERSION,
}


def transaction_bytes(ops: Sequence[WriteOp], chroot: str = "", acls: ZnodeAcls = OPEN_ACLS) -> int:
    """Return the size that a server compares with its `jute.maxbuffer` if the operations arrive as one transaction."""
    size = _FRAME + len(ops) * utf8_bytes(chroot)
    for op in ops:
        size += _BESIDE_PATH_DATA_AND_ACL[type(op)] + utf8_bytes(op.path)
        if isinstance(op, Create | SetData):
            size += len(op.data)
        if isinstance(op, Create):
            size += len(acls.find_acl(op.path))
    return size


def too_large(ops: Sequence[WriteOp], size_bytes: int, max_bytes: int) -> TooLarge:
    """Return the error for a transaction above the server's limit, with the largest of its operations."""
    index = max(range(len(ops)), key=lambda at: transaction_bytes(ops[at : at + 1]))
    return TooLarge(FailedOp(index=index, op=ops[index]), size_bytes=size_bytes, max_bytes=max_bytes)


def utf8_bytes(text: str) -> int:
    """Return the length of a text in UTF-8, which is nearly always that of the text."""
    return len(text) if text.isascii() else len(text.encode())
