"""A controller whose clock is wrong is no controller that acts after its time."""

from typing import Final

import pytest
from pyspark.sql import Row, SparkSession

from kontroller.history.audit.controllers import find_late_changes
from kontroller.history.transforms.continuity.breaks import marks
from kontroller.history.transforms.known_spans import find_known_spans
from tests.spark.clocks.journals import START_S, Journal, lines
from tests.spark.clocks.oracle import Record
from tests.spark.histories import make_events

HOUR: Final = 3600


def replace_too_late() -> list[Record]:
    """The first one goes on for ten minutes when the second has begun, and both clocks are right."""
    first = Journal().begin().live(HOUR).lead(0, -1).live(600).lead(0, 2)
    second = Journal(epoch=2)
    second.now_s = HOUR + 60
    return [*first.records, *second.begin().live(3 * HOUR).records]


def all_ahead() -> list[Record]:
    journal = Journal().begin(ahead_s=20 * HOUR).live(600).lead(0, -1).live(600)
    return journal.begin().live(2 * HOUR).lead(0, 1).live(24 * HOUR).records


def ahead_for_a_while() -> list[Record]:
    """The next one begins before the clock is set right."""
    journal = Journal().begin().live(3 * HOUR).set_clock(10 * HOUR).live(600).lead(0, -1).live(600)
    return journal.begin().live(2 * HOUR).lead(0, 1).live(24 * HOUR).records


def next_in_1970() -> list[Record]:
    journal = Journal().begin().live(3 * HOUR).lead(0, -1).live(600)
    return journal.begin(ahead_s=-START_S).live(600).begin().live(HOUR).records


HISTORIES: Final = {story.__name__: story() for story in (replace_too_late, all_ahead, ahead_for_a_while, next_in_1970)}


@pytest.fixture(scope="module")
def late(spark: SparkSession) -> list[Row]:
    events = make_events(spark, *(lines(records, name) for name, records in HISTORIES.items())).localCheckpoint()
    return find_late_changes(events, find_known_spans(marks(events)).localCheckpoint()).collect()


def test_a_controller_that_goes_on_when_the_next_has_begun_is_found(late: list[Row]) -> None:
    found = [(row.controller_epoch, row.seq) for row in late if row.cluster_id == "replace_too_late"]
    assert found == [(1, _last_change("replace_too_late"))]


def test_a_clock_that_is_not_believed_accuses_nobody(late: list[Row]) -> None:
    assert {row.cluster_id for row in late} == {"replace_too_late"}


def _last_change(name: str) -> int:
    """The number of the first epoch's last change."""
    records = (record for record in HISTORIES[name] if record["controller_epoch"] == 1)
    changes = [
        int(record["seq"]) for record in records if record["kind"] == "leadership" and not record.get("snapshot")
    ]
    return changes[-1]
