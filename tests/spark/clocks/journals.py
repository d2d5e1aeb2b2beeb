"""Journals of a cluster with one topic of two partitions, whose clocks, disks and writers are as a test wants them."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final

from tests.spark.clocks.oracle import SECOND, Record

START_S: Final = 1_767_225_600  # 2026-01-01
BOOTED_BEFORE_S: Final = 5_000
"""The seconds for which a machine has run when its journal begins."""
TOPIC: Final = "orders"
TOPIC_ID: Final = "00000000-0000-4000-8000-000000000001"
ANOTHER_TOPIC_ID: Final = "00000000-0000-4000-8000-000000000002"
PARTITIONS: Final = (0, 1)


class Journal:
    """The records that controllers write one after the other. Times are seconds; `now_s` is the right time."""

    def __init__(self, *, alive_s: int = 10, is_recorded: bool = False, epoch: int = 1, boot: str = "") -> None:
        """`epoch`: of the first term. `boot`: names the start of the writer's machine, whose uptime is recorded."""
        self.records: list[Record] = []
        self.led: list[tuple[float, int, int]] = []
        """The changes of leaders as they happened: the right time, the partition, and the leader."""
        self.now_s: float = 0
        self.ahead_s: float = 0
        """The seconds that the clock of the controller's machine is ahead."""
        self._alive_s = alive_s
        self._is_recorded = is_recorded
        self._boot = boot
        self._epoch = epoch - 1
        self._seq = 0
        self._leaders = dict.fromkeys(PARTITIONS, 1)
        self._versions = dict.fromkeys(PARTITIONS, 0)
        self._topic_id = TOPIC_ID

    def begin(self, *, ahead_s: float = 0) -> "Journal":
        """A term, on a machine whose clock is so far ahead, with its first snapshot."""
        self._epoch += 1
        self._seq = 0
        self.ahead_s = ahead_s
        kind = "recorder_started" if self._is_recorded else "controller_elected"
        self._write(kind, "controller_failover", alive_interval_ms=self._alive_s * 1000)
        return self.snapshot()

    def wait(self, seconds: float) -> "Journal":
        self.now_s += seconds
        return self

    def live(self, seconds: float) -> "Journal":
        """Let time pass without changes. The journal gets a record at each alive interval."""
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s = min(self.now_s + self._alive_s, until_s)
            self.alive()
        return self

    def set_clock(self, ahead_s: float) -> "Journal":
        self.ahead_s = ahead_s
        return self

    def alive(self, **more: Any) -> "Journal":
        return self._write("controller_alive", "journal_due", **more)

    def ask(self, seconds: float, *, requests: int = 1, off_s: float = 0) -> "Journal":
        """Let clients ask for that many changes in this time, one after the other. All are refused."""
        until_s = self.now_s + seconds
        for left in range(requests, 0, -1):
            self.now_s += (until_s - self.now_s) / left
            refused = {"api": "CreateTopics", "outcome": "refused", "principal": "User:mallory", "address": "10.0.0.66"}
            self._write("request", "create_topics", request=refused, off_s=off_s)
        return self

    def lead(
        self, partition: int, leader: int, *, cause: str = "broker_failed", version: int | None = None, **more: Any
    ) -> "Journal":
        """`version`: of the state's znode; None: the next one."""
        self._leaders[partition] = leader
        self.led.append((self.now_s, partition, leader))
        self._versions[partition] = self._versions[partition] + 1 if version is None else version
        delta = {"leader": leader, "isr": [max(leader, 1)], "partition_epoch": self._versions[partition]}
        return self._write("leadership", cause, partition=partition, delta=delta, **self._of_topic, **more)

    def know(self, partition: int, leader: int, *, version: int | None = None) -> "Journal":
        """Let the next snapshot show a change that is not recorded here. `version`: as in `lead`."""
        later = self._versions[partition] + (self._leaders[partition] != leader)
        self._versions[partition] = later if version is None else version
        self._leaders[partition] = leader
        return self

    def recreate(self) -> "Journal":
        """Delete the topic and create it again without a record. All else is as before."""
        self._topic_id = ANOTHER_TOPIC_ID
        return self

    def delete(self, partition: int) -> "Journal":
        """Delete the partition without a record. The next snapshot does not have it."""
        del self._leaders[partition]
        return self

    def create(self, partition: int) -> "Journal":
        """Create the partition. None of its replicas is alive, so it has no leader yet."""
        self._leaders[partition], self._versions[partition] = -1, 0
        return self._write("assignment", "topics_changed", partition=partition, delta=_ASSIGNED, **self._of_topic)

    def resign(self, **more: Any) -> "Journal":
        return self._write(
            "controller_resigned", "controller_failover", reason="another controller has the role", **more
        )

    def gap(self, dropped: int) -> "Journal":
        self._write("gap", "alter_partition", dropped=dropped)
        self._seq += dropped - 1
        return self

    def lose(self) -> "Journal":
        """The last record was not written after all."""
        self.records.pop()
        return self

    def snapshot(self) -> "Journal":
        self._write("snapshot_started", "journal_due")
        self._write("topic", "journal_due", delta={"czxid": 7}, snapshot=True, **self._of_topic)
        for partition in self._leaders:
            assigned: Record = {"partition": partition, "delta": _ASSIGNED, "snapshot": True}
            self._write("assignment", "journal_due", **assigned, **self._of_topic)
        for partition, leader in self._leaders.items():
            version = self._versions[partition]
            delta = {
                "leader": leader, "isr": [max(leader, 1)], "leader_epoch": version, "leader_recovery_state": 0,
                "state_controller_epoch": self._epoch, "partition_epoch": version,
            }  # fmt: skip
            self._write("leadership", "journal_due", partition=partition, delta=delta, snapshot=True, **self._of_topic)
        return self._write("snapshot_ended", "journal_due", entries=1 + 2 * len(self._leaders), checksum=0)

    @property
    def _of_topic(self) -> Record:
        return {"topic": TOPIC, "topic_id": self._topic_id}

    def _write(self, kind: str, cause: str, *, off_s: float = 0, **more: Any) -> "Journal":
        """`off_s`: by how much this stamp alone is wrong."""
        stamp_s = START_S + self.now_s + self.ahead_s + off_s
        record = {
            "v": 1, "controller_id": 100 + self._epoch, "controller_epoch": self._epoch, "seq": self._seq,
            "event_time_us": max(0, round(stamp_s * SECOND)), "kind": kind, "cause": cause,
            "correlation_id": f"{self._epoch}-{self._seq}", **more,
        }  # fmt: skip
        if self._is_recorded:
            record["inferred"] = True
        if self._boot:
            record |= {"boot": self._boot, "boot_us": round((BOOTED_BEFORE_S + self.now_s) * SECOND)}
        self._seq += 1
        self.records.append(record)
        return self


_ASSIGNED: Final[Record] = {"replicas": [1, 2], "adding": [], "removing": [], "origin_order": []}


def lines(records: Iterable[Record], cluster_id: str) -> list[bytes]:
    return [json.dumps({"cluster_id": cluster_id, **record}).encode() + b"\n" for record in records]


def sort_records(records: Sequence[Record]) -> list[Record]:
    """Return the records in their order, each once."""
    by_place = {(record["controller_epoch"], record["seq"]): record for record in records}
    return [by_place[place] for place in sorted(by_place)]
