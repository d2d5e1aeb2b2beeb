"""The elections of leaders that were not in sync. Acknowledged records may be lost with each."""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from kontroller.history.answers.intervals.states import (
    NO_LEADER,
    add_stretches,
    interval_order,
    previous_value,
    reverse_interval_order,
)
from kontroller.history.schemas import UNCLEAN_ELECTIONS


def unclean_elections(partition_intervals: DataFrame) -> DataFrame:
    """Return UNCLEAN_ELECTIONS, with the leader and the ISR before it, and the time at which the new leader had
    recovered."""
    before = interval_order().rowsBetween(Window.unboundedPreceding, -1)
    led = f.when(f.col("leader") != NO_LEADER, f.struct("stretch", "leader"))
    recovered = f.when(f.col("leader_recovery_state") == 0, f.struct("stretch", "began"))
    rows = add_stretches(partition_intervals).withColumns({
        "isr_before": previous_value("isr"),
        "_led": f.last(led, ignorenulls=True).over(before),
        "_recovered": f.last(recovered, ignorenulls=True).over(reverse_interval_order()),
    })  # fmt: skip
    same_stretch = f.col("_recovered.stretch") == f.col("stretch")
    elections = rows.where("unclean").withColumns({
        "elected_at": f.col("began"),
        "leader_before": f.when(f.col("_led.stretch") == f.col("stretch"), f.col("_led.leader")),
        "recovered_at": f.when((f.col("leader_recovery_state") == 1) & same_stretch, f.col("_recovered.began")),
    })  # fmt: skip
    return elections.select(*UNCLEAN_ELECTIONS.schema.fieldNames())
