"""Journals with bad clocks, silences, losses and repetitions: Spark says of them what the oracle works out by hand."""

from typing import Final

from pyspark.sql import SparkSession

from tests.spark.clocks.drawn import examples, journals
from tests.spark.clocks.folded import fold_journals
from tests.spark.clocks.journals import sort_records
from tests.spark.clocks.oracle import Timeline, timelines

EXAMPLES: Final = 150
"""The number of examples. All of them are clusters of one run of Spark."""
SILENCE_S: Final = 60


def drop_empty(states: dict[int, Timeline]) -> dict[int, Timeline]:
    return {partition: timeline for partition, timeline in states.items() if timeline}


def test_what_is_known_is_what_the_oracle_says(spark: SparkSession) -> None:
    batch = {f"cluster {number}": records for number, records in enumerate(examples(journals(), EXAMPLES))}
    found = fold_journals(spark, {name: [records] for name, records in batch.items()})
    expected = {
        name: timelines(sort_records(records), silence_s=SILENCE_S, with_proofs=True) for name, records in batch.items()
    }
    wrong = [name for name in batch if drop_empty(found.timelines[name]) != drop_empty(expected[name])]
    assert [(found.timelines[name], expected[name], sort_records(batch[name])) for name in wrong[:1]] == []
    unknown = [state for states in expected.values() for timeline in states.values() for state in timeline]
    assert {None, -1, 1, 2} <= {leader for _, _, leader in unknown}, "or this compares nothing"
