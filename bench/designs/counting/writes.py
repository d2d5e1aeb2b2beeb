"""What the transactions of a while wrote, by what the znodes are."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from bench.designs.counting.transaction_log import Transaction

_NUMBER: Final = re.compile(r"-?\d+$")


@dataclass(slots=True, kw_only=True)
class Writes:
    """Sums transactions up."""

    first_ms: int = 0
    """When the first one was made, those of sessions included; 0 where there is none."""
    transactions: int = 0
    """Without those of sessions."""
    refused: int = 0
    """Of these: what somebody else had made impossible before."""
    znodes: Counter[str] = field(default_factory=Counter)
    """Znodes that were created, changed or deleted, as `set data ISR`."""

    def take(self, transactions: Iterable[Transaction]) -> None:
        for transaction in transactions:
            self.first_ms = self.first_ms or transaction.time_ms
            self.transactions += not transaction.is_of_sessions
            self.refused += transaction.is_refused
            for operation in () if transaction.is_refused else transaction.operations:
                if operation.change != "check":
                    self.znodes[f"{operation.change} {kind_of(operation.path)}"] += 1


def kind_of(path: str) -> str:
    """What a znode is: the last name in its path that is not one of many."""
    names = path.split("/")[2:]
    if "partitions_reassigned" in names:
        return "partitions_reassigned"
    if names[-1:] and names[-1].isdigit() and "topics" in names:
        return "partition"
    if names[-2:-1] == ["topics"]:
        return "topic"
    return next((name for each in reversed(names) if (name := _NUMBER.sub("", each))), "root")
