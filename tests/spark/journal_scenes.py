"""Journals of one partition, in hours: the writers, their times, the leaders, and the losses."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from kontroller.history.schemas import LINES

BEGAN = datetime(2026, 3, 1, tzinfo=UTC)
ALIVE_S = 30
Folders = Mapping[str, list[bytes]]
"""The lines of a cluster's journals, by folder."""


def make_time(hours: float) -> datetime:
    return BEGAN + timedelta(hours=hours)


class Writer:
    """Writes one journal of an epoch. Hours are counted from `BEGAN`, by the writer's clock."""

    def __init__(
        self, cluster_id: str, *, who: int = 1, epoch: int = 1, is_recorder: bool = False, alive_s: int = ALIVE_S
    ) -> None:
        self.lines: list[bytes] = []
        self.hours = 0.0
        self._seq = 0
        self._alive_s = alive_s
        self._state: dict[str, Any] = {
            "leader": 1, "isr": [1, 2, 3], "leader_epoch": 0, "leader_recovery_state": 0, "state_controller_epoch": epoch,
            "partition_epoch": 0,
        }  # fmt: skip
        self._common = {"v": 1, "cluster_id": cluster_id, "controller_id": who, "controller_epoch": epoch}
        self._common |= {"cause": "controller_failover", "correlation_id": f"{epoch}-0"}
        self._first = "recorder_started" if is_recorder else "controller_elected"
        if is_recorder:
            self._common["inferred"] = True

    def begin(self, hours: float = 0.0) -> "Writer":
        self.hours = hours
        self._write(self._first, **({} if self._alive_s == ALIVE_S else {"alive_interval_ms": self._alive_s * 1000}))
        return self.snapshot()

    def snapshot(self, czxid: int = 7) -> "Writer":
        self._write("snapshot_started")
        for broker in (1, 2, 3):
            registered: dict[str, Any] = {"broker_epoch": broker, "endpoints": [], "supported_features": {}}
            self._write("broker", broker=broker, delta=registered, snapshot=True)
        self._write("topic", topic="orders", delta={"czxid": czxid}, snapshot=True)
        replicas = {"replicas": [1, 2, 3], "adding": [], "removing": [], "origin_order": []}
        self._write("assignment", topic="orders", partition=0, delta=replicas, snapshot=True)
        self._write("leadership", topic="orders", partition=0, delta=self._state, snapshot=True)
        self._write("snapshot_ended", entries=6, checksum=1)
        return self

    def create_again(self, czxid: int) -> "Writer":
        self._write("topic_removed", topic="orders")
        self._write("topic", topic="orders", delta={"czxid": czxid})
        replicas = {"replicas": [1, 2, 3], "adding": [], "removing": [], "origin_order": []}
        self._write("assignment", topic="orders", partition=0, delta=replicas)
        self._state |= {"leader": 2, "leader_epoch": 0, "partition_epoch": 0}
        self._write("leadership", topic="orders", partition=0, delta=self._state)
        return self

    def follow(self, other: "Writer") -> "Writer":
        """Start from the state that another writer left."""
        self._state |= other._state
        return self

    def alive(self, until: float) -> "Writer":
        """Says that it lives until then."""
        while self.hours < until:
            self.hours = min(until, self.hours + self._alive_s / 3600)
            self._write("controller_alive")
        return self

    def lead(self, leader: int, at_hours: float) -> "Writer":
        """Lives until then, and records another leader, or none."""
        self.alive(at_hours)
        self._state |= {
            "leader": leader,
            "state_controller_epoch": self._common["controller_epoch"],
            "leader_epoch": self._state["leader_epoch"] + 1,
            "partition_epoch": self._state["partition_epoch"] + 1,
        }
        told = {name: value for name, value in self._state.items() if name != "leader_recovery_state"}
        self._write("leadership", topic="orders", partition=0, delta=told)
        return self

    def silent(self, until: float) -> "Writer":
        self.hours = until
        return self

    def lose(self, until: float) -> "Writer":
        """Lose all records until that time, say so, and begin again with a snapshot."""
        self.hours = until
        self._write("gap", dropped=3)
        self._seq += 2
        return self.snapshot()

    def _write(self, kind: str, **fields: Any) -> None:
        moment = round(make_time(self.hours).timestamp() * 1_000_000)
        record = self._common | {"seq": self._seq, "event_time_us": moment, "kind": kind} | fields
        self.lines.append(json.dumps(record).encode())
        self._seq += 1


def controller(cluster_id: str, **how: Any) -> Writer:
    return Writer(cluster_id, **how)


def recorder(cluster_id: str, **how: Any) -> Writer:
    return Writer(cluster_id, is_recorder=True, **how)


def make_lines(spark: SparkSession, scenes: Mapping[str, Folders]) -> DataFrame:
    """Return the journals of all clusters together, as a source gives them (`schemas.LINES`)."""

    def rows() -> Iterator[tuple[str, str, str, None]]:
        for cluster_id, folders in scenes.items():
            for folder, lines in folders.items():
                journal = f"/{cluster_id}/{folder}"
                yield from ((line.decode(), f"{journal}/segment.jsonl", journal, None) for line in lines)

    return spark.createDataFrame(list(rows()), LINES)
