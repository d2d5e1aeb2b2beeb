"""The events from which states are folded. Most other records only show that the writer lives, or repeat the state.

A record's rows in this table depend on itself and on the snapshot that its state began with, never on a later record.
So the table only grows with the history, and a fold reads changes instead of years of snapshots.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.schemas import EVENTS
from kontroller.history.transforms.continuity.neighbours import EPOCH


def changes(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return the events within known spans, without signs of life and redundant snapshot entries.

    The entries of the snapshot that a state begins with are kept. Intervals and folded checksums need only these
    events."""
    around = f.broadcast(spans.select(*EPOCH, "first_seq", "snapshot_seq", "last_seq"))
    rows = events.where(f.col("kind") != Kind.CONTROLLER_ALIVE.value).join(around, [*EPOCH])
    rows = rows.where("seq between first_seq and last_seq and (not snapshot or seq <= snapshot_seq)")
    return rows.select(*EVENTS.schema.fieldNames())
