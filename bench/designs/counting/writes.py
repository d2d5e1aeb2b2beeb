"""The writes of a period, by the kinds of znodes."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from bench.designs.counting.transaction_log import Transaction

_NUMBER: Final = re.compile(r"-?\d+$")


@dataclass(slots=True, kw_only=True)
class Writes:
    """Sums of transactions."""

    first_ms: int = 0
    """The time of the first transaction, including those of sessions; 0 if there is none."""
    transactions: int = 0
    """Without those of sessions."""
    refused: int = 0
    """Of these, the ones that another session's write made impossible."""
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
    """Return the kind of a znode: the last name in its path that is not one of many."""
    names = path.split("/")[2:]
    if "partitions_reassigned" in names:
        return "partitions_reassigned"
    if names[-1:] and names[-1].isdigit() and "topics" in names:
        return "partition"
    if names[-2:-1] == ["topics"]:
        return "topic"
    return next((name for each in reversed(names) if (name := _NUMBER.sub("", each))), "root")
