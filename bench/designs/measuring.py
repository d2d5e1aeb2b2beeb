"""One scenario of one cluster: the requests to ZooKeeper and the servers until it is over, and its duration.

Times are ZooKeeper's, from the first transaction of the scenario; after a broker's death that is the end of its
session. A scenario is over when ZooKeeper has the expected state, each live broker answers clients accordingly, and
nothing has been written for a while.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from bench.designs.clusters import DesignCluster
from bench.designs.counting.leaderships import Leaderships
from bench.designs.counting.transaction_log import Transaction, TransactionLog
from bench.designs.counting.writes import Writes
from bench.designs.counting.zookeeper_counters import ZooKeeperCounters, counters
from bench.setup.processor import cpu_s
from devcluster.clusters.zookeeper import ZooKeeper
from devcluster.running.processes import ConditionTimeoutError

_LOOK_S: Final = 0.25
_QUIET_S: Final = 4.0
"""Longer than an election waits for the preferred replica."""
_NOT_OF_SERVERS: Final = ("Metadata", "ApiVersions")
"""Requests of clients and of this measurement."""


class Measuring:
    """Measures scenarios of a cluster sequentially."""

    def __init__(self, zookeeper: ZooKeeper, cluster: DesignCluster, *, deadline_s: float) -> None:
        self.leaderships: Final = Leaderships()
        self._zookeeper = zookeeper
        self._cluster = cluster
        self._log = TransactionLog(zookeeper.data_folder)
        self._deadline_s = deadline_s

    def scenario(self, name: str, begin: Callable[[], object], is_over: Callable[[], bool]) -> dict[str, Any]:
        """Start the scenario, wait until it is over, and return the counts. Raises `ConditionTimeoutError`."""
        self._follow()
        asked, received = self._read_counters(), self._cluster.count_received()
        spent_s = _processor_s(self._pids())
        elections, writes = self.leaderships.elections, Writes()
        begin()
        self._wait_until(is_over, writes, f"{name} of {self._cluster.design} is over")
        self._wait_until(lambda: self._is_known(), writes, f"the brokers of {self._cluster.design} know")
        known_ms = time.time() * 1000
        self._wait_until_quiet(writes)
        now_s = _processor_s(self._pids())
        since = self._read_counters().subtract(asked)
        messages = self._cluster.count_received() - received
        times_ms = {"led_s": self.leaderships.led_ms, "settled_s": self.leaderships.changed_ms, "known_s": known_ms}
        return {
            "design": self._cluster.design,
            "scenario": name,
            "partitions": len(self.leaderships.partitions),
            "leaders": self.leaderships.elections - elections,
            **{time_s: round((at_ms - writes.first_ms) / 1000, 2) for time_s, at_ms in times_ms.items()},
            "processor_s": round(sum(now_s[pid] - spent_s.get(pid, 0.0) for pid in now_s), 2),
            "requests": since.requests,
            "znodes_read": since.znodes_read,
            "notifications": since.notifications,
            "watches": since.watches,
            "transactions": writes.transactions,
            "refused": writes.refused,
            "znodes_written": sum(writes.znodes.values()),
            "written": dict(sorted(writes.znodes.items())),
            "messages": {api: count for api, count in sorted(messages.items()) if api not in _NOT_OF_SERVERS},
        }

    def _is_known(self) -> bool:
        """Return True if the live brokers' metadata agrees with ZooKeeper about every partition."""
        leaders = {name: partition.leader for name, partition in self.leaderships.partitions.items()}
        return all(said == leaders for said in self._cluster.leaders_as_told())

    def _wait_until(self, is_so: Callable[[], bool], writes: Writes, what: str) -> None:
        until_s = time.monotonic() + self._deadline_s
        while self._follow(writes) or not is_so():
            if time.monotonic() > until_s:
                raise ConditionTimeoutError(f"waited {self._deadline_s:.0f} s in vain until {what}")
            time.sleep(_LOOK_S)

    def _wait_until_quiet(self, writes: Writes) -> None:
        since_s = time.monotonic()
        while time.monotonic() - since_s < _QUIET_S:
            if self._follow(writes):
                since_s = time.monotonic()
            time.sleep(_LOOK_S)

    def _follow(self, writes: Writes | None = None) -> list[Transaction]:
        transactions = list(self._log.read())
        self.leaderships.take(transactions)
        if writes is not None:
            writes.take(transactions)
        return transactions

    def _read_counters(self) -> ZooKeeperCounters:
        return counters(self._zookeeper.port, self._cluster.design)

    def _pids(self) -> list[int]:
        return [self._zookeeper.process.pid, *self._cluster.pids]


def _processor_s(pids: list[int]) -> dict[int, float]:
    return {pid: cpu_s(pid) for pid in pids}
