"""Packs groups of operations into a few transactions of moderate size.

A transaction of thousands of operations delays the requests behind it, so a large number of groups makes several
transactions. A group is never split: one that exceeds the limits is a transaction of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from controller_core.zk.session import WriteOp

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLimits:
    """The limits of a transaction of several groups, including its first operations."""

    max_ops: int
    max_bytes: int
    size_bytes: Callable[[Sequence[WriteOp]], int]
    """Returns the bytes of operations as one transaction."""

    def pack(self, groups: Mapping[K, Sequence[WriteOp]], header: Sequence[WriteOp]) -> list[list[K]]:
        """Return the keys of the groups in order, in batches that fit one transaction after the header.

        A batch above the limits has only one group.
        """
        header_ops, header_bytes = len(header), self.size_bytes(header)
        batches: list[list[K]] = []
        ops, size = self.max_ops + 1, self.max_bytes  # no batch yet, so that the first group begins one
        for key, group in groups.items():
            group_bytes = self.size_bytes(group)
            ops += len(group)
            size += group_bytes
            if ops <= self.max_ops and size <= self.max_bytes:
                batches[-1].append(key)
                continue
            ops, size = header_ops + len(group), header_bytes + group_bytes
            batches.append([key])
        return batches
