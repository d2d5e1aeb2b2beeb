"""The leader and the ISR of each partition, from the transactions of a cluster of either design.

v2 has a znode for the leader and one for the ISR, v3 one for both. In v2 a leader's znode goes with its session; in v3
it stays, and may name a dead broker until the controller writes it.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from bench.designs.counting.transaction_log import Operation, Transaction

Design = Literal["v2", "v3"]
DESIGNS: Final[tuple[Design, ...]] = ("v2", "v3")

_V2: Final = re.compile(r"^/v2/brokers/topics/([^/]+)/(\d+)/(leader|ISR)$")
_V3: Final = re.compile(r"^/v3/brokers/topics/([^/]+)/partitions/(\d+)/state$")
NOBODY: Final = -1


@dataclass(slots=True, kw_only=True)
class Leadership:
    """The leadership of one partition."""

    leader: int = NOBODY
    in_sync: frozenset[int] = frozenset()


@dataclass(slots=True, kw_only=True)
class Leaderships:
    """The state of all partitions, folded from transactions."""

    partitions: dict[str, Leadership] = field(default_factory=dict)
    elections: int = 0
    """The number of changes of a partition's leader to another one."""
    led_ms: int = 0
    """The time when the last leader was written."""
    changed_ms: int = 0
    """The time when the last leader or ISR was written."""

    def take(self, transactions: Iterable[Transaction]) -> None:
        for transaction in transactions:
            for operation in transaction.operations:
                if operation.change != "check" and not transaction.is_refused:
                    self._take(operation, transaction.time_ms)

    def _take(self, operation: Operation, time_ms: int) -> None:
        if match := _V2.match(operation.path):
            partition = self.partitions.setdefault(f"{match[1]}-{match[2]}", Leadership())
            if match[3] == "leader":
                is_gone = operation.change == "delete"
                self._lead(partition, NOBODY if is_gone else int(operation.data.split(b",")[0]), time_ms)
            else:
                partition.in_sync = frozenset(map(int, filter(None, operation.data.split(b","))))
                self.changed_ms = time_ms
        elif (match := _V3.match(operation.path)) and operation.change != "delete":
            partition = self.partitions.setdefault(f"{match[1]}-{match[2]}", Leadership())
            said = json.loads(operation.data)
            partition.in_sync = frozenset(said["isr"])
            self.changed_ms = time_ms
            self._lead(partition, int(said["leader"]), time_ms)

    def _lead(self, partition: Leadership, leader: int, time_ms: int) -> None:
        if leader not in (partition.leader, NOBODY):
            self.led_ms = self.changed_ms = time_ms
            self.elections += 1
        partition.leader = leader
