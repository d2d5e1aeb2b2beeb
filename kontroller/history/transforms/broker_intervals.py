"""The registrations of brokers over time, with epoch and rack."""

from typing import Final

from pyspark.sql import DataFrame

from controller_core.journal.changes import Kind
from kontroller.history.schemas import BROKER_INTERVALS
from kontroller.history.transforms.intervals import lasting, placed, with_unknown

_KEY: Final = ("cluster_id", "broker")
_STATE: Final = ("broker_epoch", "rack", "cause")


def broker_intervals(events: DataFrame, spans: DataFrame) -> DataFrame:
    """Return `schemas.BROKER_INTERVALS`."""
    rows = events.where(f"kind in ('{Kind.BROKER}', '{Kind.BROKER_REMOVED}')")
    rows = lasting(placed(rows, spans), _KEY).where(f"kind = '{Kind.BROKER}'")
    return with_unknown(rows, _STATE, spans).select(*BROKER_INTERVALS.schema.fieldNames())
