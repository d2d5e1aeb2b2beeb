"""The events from which states are folded: most of a journal says only that its writer lives, or what is known already.

What is in this table of a record follows from it, from the snapshot that its state began with, and from no later record. So
of a history that goes on all that there is of it stays, and a fold reads changes instead of years of snapshots.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from controller_core.journal.changes import Kind
from kontroller.history.schemas import EVENTS
from kontroller.history.transforms.continuity.neighbours import EPOCH


def changes(events: DataFrame, spans: DataFrame) -> DataFrame:
    """The events within known spans, without signs of life and without the entries of snapshots that a state does not
    begin with. Intervals and folded checksums are made of these alone."""
    around = f.broadcast(spans.select(*EPOCH, "first_seq", "snapshot_seq", "last_seq"))
    rows = events.where(f.col("kind") != Kind.CONTROLLER_ALIVE.value).join(around, [*EPOCH])
    rows = rows.where("seq between first_seq and last_seq and (not snapshot or seq <= snapshot_seq)")
    return rows.select(*EVENTS.schema.fieldNames())
