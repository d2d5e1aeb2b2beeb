"""Packs groups of operations into as few transactions as ZooKeeper takes.

ZooKeeper refuses a request above its `jute.maxbuffer` (1 MiB unless configured) by closing the connection, so a
transaction stays well below it; and a transaction of thousands of operations delays the requests behind it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from controller_core.zk.session import Create, SetData, WriteOp

K = TypeVar("K")

_OP_OVERHEAD_BYTES: Final = 100
"""Headers, ACL and a chroot of moderate length; more than one operation takes besides its path and data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLimits:
    """What one transaction holds, the operations that stand at its start included."""

    max_ops: int
    max_bytes: int

    def pack(self, groups: Mapping[K, Sequence[WriteOp]], header: Sequence[WriteOp]) -> Iterator[list[K]]:
        """The keys of the groups in their order, in batches that fit one transaction behind the header."""
        batch: list[K] = []
        ops, size = len(header), size_bytes(header)
        for key, group in groups.items():
            group_bytes = size_bytes(group)
            if batch and not self._hold(ops + len(group), size + group_bytes):
                yield batch
                batch, ops, size = [], len(header), size_bytes(header)
            batch.append(key)
            ops += len(group)
            size += group_bytes
        if batch:
            yield batch

    def require_fitting(self, groups: Mapping[K, Sequence[WriteOp]], header: Sequence[WriteOp]) -> None:
        """Raises `ValueError` where a group is larger than a transaction."""
        for key, group in groups.items():
            ops, size = len(header) + len(group), size_bytes(header) + size_bytes(group)
            if not self._hold(ops, size):
                raise ValueError(
                    f"group {key} needs {ops} operations and {size} bytes, a transaction holds "
                    f"{self.max_ops} and {self.max_bytes}: split the group"
                )

    def _hold(self, ops: int, size: int) -> bool:
        return ops <= self.max_ops and size <= self.max_bytes


def size_bytes(ops: Sequence[WriteOp]) -> int:
    """An upper bound of what the operations take in a request, for paths of ASCII characters."""
    return sum(
        len(op.path) + (len(op.data) if isinstance(op, Create | SetData) else 0) + _OP_OVERHEAD_BYTES for op in ops
    )
