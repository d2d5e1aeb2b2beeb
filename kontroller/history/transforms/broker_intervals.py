"""The registrations of brokers over time, with epoch and rack."""

from typing import Final

from pyspark.sql import DataFrame

from controller_core.journal.changes import Kind
from kontroller.history.schemas import BROKER_INTERVALS
from kontroller.history.transforms.intervals import add_ends, add_unknown, place_records

_KEY: Final = ("cluster_id", "broker")
_STATE: Final = ("broker_epoch", "rack", "cause")


def broker_intervals(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return `schemas.BROKER_INTERVALS`."""
    rows = events.where(f"kind in ('{Kind.BROKER}', '{Kind.BROKER_REMOVED}')")
    rows = add_ends(place_records(rows, spans), _KEY).where(f"kind = '{Kind.BROKER}'")
    return add_unknown(rows, _STATE, spans).select(*BROKER_INTERVALS.schema.fieldNames())
