"""Packs groups of operations into few transactions of moderate size.

A transaction of thousands of operations delays the requests behind it, so very many groups are several transactions. A
group is one piece: one that is larger than that is a transaction of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from controller_core.zk.session import WriteOp

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLimits:
    """What a transaction of several groups holds, the operations that stand at its start included."""

    max_ops: int
    max_bytes: int
    size_bytes: Callable[[Sequence[WriteOp]], int]
    """What operations take as one transaction."""

    def pack(self, groups: Mapping[K, Sequence[WriteOp]], header: Sequence[WriteOp]) -> list[list[K]]:
        """The keys of the groups in their order, in batches that fit one transaction behind the header.

        A batch that is above the limits has one group in it."""
        header_ops, header_bytes = len(header), self.size_bytes(header)
        batches: list[list[K]] = []
        ops, size = self.max_ops + 1, self.max_bytes  # no batch yet: the first group begins one
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
