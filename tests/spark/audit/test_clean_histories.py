"""A hundred random histories in which nothing is wrong: the audit finds nothing, and does not confuse their clusters."""

from pathlib import Path

from pyspark.sql import SparkSession

from kontroller.history.audit.audit import audit
from kontroller.history.schemas import EVENTS, KNOWN_SPANS, PROOFS
from kontroller.history.store import Store
from kontroller.history.transforms.continuity.breaks import marks
from kontroller.history.transforms.known_spans import find_known_spans
from tests.spark.histories import history, make_events

SEEDS = range(50)


def test_nothing_is_found_in_random_histories_of_controllers_and_recorders(spark: SparkSession, tmp_path: Path) -> None:
    journals = [
        history(seed, cluster_id=f"{seed}-{is_recorded}", events=50, is_recorded=is_recorded)
        for seed in SEEDS
        for is_recorded in (False, True)
    ]
    store = Store(spark=spark, location=str(tmp_path))
    with store.begin_change() as change:
        change.write(EVENTS, make_events(spark, *journals))
        change.write(KNOWN_SPANS, find_known_spans(marks(change.read(EVENTS))))
    events = store.read(EVENTS)
    assert events.where("kind = 'leadership' AND NOT snapshot").count() > 10 * len(SEEDS)
    assert events.where("unclean").count() > 0
    proofs = spark.createDataFrame([], PROOFS.schema)
    found = audit(events, store.read(KNOWN_SPANS), proofs, unclean_by_default=True).collect()
    assert [(row.cluster_id, row.invariant, row.detail) for row in found] == []
