"""Packs groups of operations into as few transactions as ZooKeeper takes.

ZooKeeper refuses a request above its `jute.maxbuffer` (1 MiB unless configured) by closing the connection, so a
transaction stays well below it; and a transaction of thousands of operations delays the requests behind it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from controller_core.zk.session import Create, SetData, WriteOp

K = TypeVar("K")

_OP_OVERHEAD_BYTES: Final = 100
"""Headers, ACL and a chroot of moderate length; more than one operation takes besides its path and data."""

_WITH_DATA: Final = (Create, SetData)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLimits:
    """What one transaction holds, the operations that stand at its start included."""

    max_ops: int
    max_bytes: int

    def pack(self, groups: Mapping[K, Sequence[WriteOp]], header: Sequence[WriteOp]) -> list[list[K]]:
        """The keys of the groups in their order, in batches that fit one transaction behind the header.

        Raises `ValueError` where a group is larger than a transaction."""
        header_ops, header_bytes = len(header), size_bytes(header)
        batches: list[list[K]] = []
        ops, size = self.max_ops + 1, self.max_bytes  # no batch yet: the first group begins one
        for key, group in groups.items():
            group_bytes = size_bytes(group)
            ops += len(group)
            size += group_bytes
            if ops <= self.max_ops and size <= self.max_bytes:
                batches[-1].append(key)
                continue
            ops, size = header_ops + len(group), header_bytes + group_bytes
            if ops > self.max_ops or size > self.max_bytes:
                raise ValueError(
                    f"group {key} needs {ops} operations and {size} bytes, a transaction holds "
                    f"{self.max_ops} and {self.max_bytes}: split the group"
                )
            batches.append([key])
        return batches


def size_bytes(ops: Sequence[WriteOp]) -> int:
    """An upper bound of what the operations take in a request, for paths of ASCII characters."""
    size = 0
    for op in ops:
        size += len(op.path) + _OP_OVERHEAD_BYTES
        if isinstance(op, _WITH_DATA):
            size += len(op.data)
    return size
