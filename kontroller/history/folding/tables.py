"""The tables that a history keeps beside its layers: raw records, and notes for the next fold."""

from typing import Final

from kontroller.history.schemas import EVENTS, FINDINGS, FLAG, LONG, TEXT, Table, columns
from kontroller.history.transforms.continuity import breaks

RAW_EVENTS: Final = Table(
    name="raw_events",
    schema=EVENTS.schema,
    order=(*EVENTS.order, "journal", "event_time"),
    by_day="event_time",
)
RAW_FINDINGS: Final = Table(name="raw_findings", schema=FINDINGS.schema, order=FINDINGS.order)
JOURNALS: Final = Table(
    name="journals",
    schema=columns(cluster_id=TEXT, journal=TEXT, is_recorded=FLAG),
    order=("cluster_id", "journal"),
)
"""The clusters that the records of a journal name; "" if they name none. `is_recorded`: one of the records shows that a
recorder wrote it. There are a few rows for each cluster."""
MARKS: Final = Table(name="marks", schema=breaks.MARKS, order=("cluster_id", "controller_epoch", "seq", "mark"))
"""The places at which each cluster's history breaks, and those of its snapshots."""
CHANGES: Final = Table(name="changes", schema=EVENTS.schema, order=EVENTS.order, by_day="event_time")
"""The events that intervals are made of (`transforms.changes`)."""
TALLIES: Final = Table(
    name="tallies",
    schema=columns(cluster_id=TEXT, records=LONG, checksums=LONG, proven=LONG, findings=LONG),
    order=("cluster_id",),
)
"""Counts of each cluster: rows of `EVENTS`, checksums of `PROOFS` that can be compared, those of them that are equal,
and rows of `FINDINGS`."""
