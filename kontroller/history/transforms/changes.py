"""The events from which states are folded. Most other records only show that the writer lives, repeat the state, or say
who asked for a change.

A record's rows in this table depend on itself and on the snapshot that its state began with, never on a later record.
So the table only grows with the history, and a fold reads changes instead of years of snapshots.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.schemas import EVENTS
from kontroller.history.transforms.continuity.neighbours import EPOCH

_WITHOUT_STATE: Final = (Kind.CONTROLLER_ALIVE.value, Kind.REQUEST.value)


def changes(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the events within known spans, without signs of life, requests and redundant snapshot entries.

    The entries of the snapshot that a state begins with are kept. Intervals and folded checksums need only these
    events."""
    around = f.broadcast(spans.select(*EPOCH, "first_seq", "snapshot_seq", "last_seq"))
    rows = events.where(~f.col("kind").isin(*_WITHOUT_STATE)).join(around, [*EPOCH])
    rows = rows.where("seq between first_seq and last_seq and (not snapshot or seq <= snapshot_seq)")
    return rows.select(*EVENTS.schema.fieldNames())
