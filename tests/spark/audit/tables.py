"""Lines of journals as the tables that the audit reads, as rows, so that a test may say exactly what is in them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
from pyspark.sql import DataFrame, Row, SparkSession

from kontroller.history.audit.audit import audit
from kontroller.history.schemas import EVENTS, KNOWN_SPANS, PROOFS

Record = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class Tables:
    """The tables that the audit reads, as rows."""

    events: list[Record] = field(default_factory=list)
    spans: list[Record] = field(default_factory=list)
    proofs: list[Record] = field(default_factory=list)

    def add(self, lines: Iterable[bytes], *, origin: str = "controller", cluster_id: str | None = None) -> list[Record]:
        """The records of one cluster's journal, which may still be changed."""
        added = [_event(orjson.loads(line), origin, cluster_id) for line in lines]
        self.events += added
        self.spans += _spans(added)
        return added

    def audit(self, spark: SparkSession, **settings: Any) -> list[Row]:
        tables = ((self.events, EVENTS), (self.spans, KNOWN_SPANS), (self.proofs, PROOFS))
        return audit(*(_frame(spark, rows, table.schema) for rows, table in tables), **settings).collect()


def _frame(spark: SparkSession, rows: Sequence[Record], schema: Any) -> DataFrame:
    names = schema.fieldNames()
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], schema)


def _event(line: dict[str, Any], origin: str, cluster_id: str | None) -> Record:
    time = _EPOCH + timedelta(microseconds=line["event_time_us"])
    known = {
        "cluster_id": cluster_id or line["cluster_id"] or "",
        "origin": origin,
        "event_time": time,
        "source": "memory",
    }
    flags = {name: line.get(name, False) for name in ("inferred", "snapshot", "unclean")}
    return {**line, **line.get("delta", {}), **flags, **known}


def _spans(events: list[Record]) -> list[Record]:
    """Return the known spans: from the end of a snapshot to the last record before a gap, another epoch, or the end."""
    spans: list[Record] = []
    current: Record | None = None
    for event in events:
        place = {"last_seq": event["seq"], "ended": event["event_time"]}
        if current and (event["controller_epoch"] != current["controller_epoch"] or event["kind"] in _ENDING):
            current = None
        if current is None and event["kind"] == "snapshot_ended":
            names = ("cluster_id", "controller_epoch", "controller_id", "origin")
            known = {name: event[name] for name in names}
            current = known | {
                "span": len(spans),
                "first_seq": event["seq"],
                "snapshot_seq": event["seq"],
                "began": event["event_time"],
            }
            spans.append(current)
        if current is not None:
            current |= place
    return spans


_ENDING = ("gap", "recorder_started")
