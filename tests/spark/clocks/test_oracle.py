"""Journals with bad clocks, silences, losses and repetitions: Spark says of them what the oracle works out by hand."""

from typing import Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.spark.clocks.drawn import journals
from tests.spark.clocks.folded import folded
from tests.spark.clocks.journals import in_order
from tests.spark.clocks.oracle import timelines

BATCH: Final = 120
"""How many journals there are in one run of Spark."""
SILENCE_S: Final = 60


@settings(
    max_examples=1, phases=[Phase.generate], deadline=None, suppress_health_check=[*HealthCheck], database=None,
)  # fmt: skip
@given(st.data())
def test_what_is_known_is_what_the_oracle_says(spark: SparkSession, data: st.DataObject) -> None:
    batch = {f"cluster {number}": data.draw(journals()) for number in range(BATCH)}
    found = folded(spark, batch)
    for name, records in batch.items():
        expected = timelines(in_order(records), silence_s=SILENCE_S)
        assert dict(found.timelines[name]) == {key: states for key, states in expected.items() if states}, records
