"""ISR flapping: what left, what joined, and what came back, by replica and day."""

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.isr_flaps import isr_flaps
from kontroller.history.schemas import ISR_FLAPS
from tests.spark.answers.literals import DAY, Answers, Histories, answers, day, partition

ALL, ONE_OUT = {"isr": [1, 2, 3]}, {"isr": [1, 2]}

CLUSTERS = {
    "each": partition(
        (0, ALL), (10, ONE_OUT), (15, {"isr": [2]}), (20, {"isr": [2, 3]}), (30, {"isr": [3]}), (31, ALL), until=40
    ),
    "no length": partition((0, ALL), (10, ONE_OUT), (10, ALL), until=40),
    "over midnight": partition((0, ALL), (DAY - 10, ONE_OUT), (DAY + 5, ALL), until=2 * DAY),
    "out all day": partition((0, ONE_OUT), until=DAY + 100),
    "found outside": partition((0, ONE_OUT), (10, ALL), until=40),
    "unknown between": partition((0, ALL), (10, ONE_OUT), (20, None), (30, {}), (35, ALL), until=40),
    "only the order": partition((0, ALL), (10, {"isr": [3, 2, 1]}), until=40),
    "moved away": partition(
        (0, ALL),
        (10, {"replicas": [1, 2, 4, 3], "adding": [4], "removing": [3]}),
        (20, {"isr": [1, 2, 3, 4]}),
        (30, {"replicas": [1, 2, 4], "adding": [], "removing": [], "isr": [1, 2, 4]}),
        until=40,
    ),
    "deleted meanwhile": [
        *partition((0, ALL), (10, ONE_OUT), until=20, is_last=False),
        *partition((30, {"topic_id": "x", "isr": [1, 2, 3]}), until=40),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Answers:
    return answers(isr_flaps(Histories(spark, CLUSTERS).partitions), ISR_FLAPS)


NAMES = ("broker", "shrinks", "expansions", "flaps", "out_of_sync_seconds")


def test_each_replica_is_counted_for_itself(found: Answers) -> None:
    assert found("each", *NAMES) == [(1, 1, 1, 1, 16), (2, 1, 1, 1, 1), (3, 1, 1, 1, 10)]


def test_a_flap_faster_than_the_clock_counts(found: Answers) -> None:
    assert found("no length", *NAMES) == [(3, 1, 1, 1, 0)]


def test_each_counts_for_its_day_and_the_flap_for_that_of_the_return(found: Answers) -> None:
    assert found("over midnight", "day", *NAMES) == [(day(1), 3, 1, 0, 0, 10), (day(2), 3, 0, 1, 1, 5)]


def test_a_replica_that_stays_out_shows_each_day(found: Answers) -> None:
    assert found("out all day", "day", *NAMES) == [(day(1), 3, 0, 0, 0, DAY), (day(2), 3, 0, 0, 0, 100)]


def test_what_was_not_seen_to_leave_has_not_flapped(found: Answers) -> None:
    assert found("found outside", *NAMES) == [(3, 0, 1, 0, 10)]


def test_no_flap_is_concluded_across_unknown_time(found: Answers) -> None:
    assert found("unknown between", *NAMES) == [(3, 1, 1, 0, 15)]


def test_the_order_of_the_isr_is_no_change(found: Answers) -> None:
    assert found("only the order", *NAMES) == []


def test_a_reassignment_is_no_flapping(found: Answers) -> None:
    assert found("moved away", *NAMES) == []


def test_a_deleted_topic_takes_its_flaps_along(found: Answers) -> None:
    assert found("deleted meanwhile", *NAMES) == [(3, 1, 0, 0, 10)]
