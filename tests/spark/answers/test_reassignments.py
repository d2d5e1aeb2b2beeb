"""Reassignments: what was wanted, what came of it, and how long nothing moved."""

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.options import Options
from kontroller.history.answers.reassignments import reassignments
from kontroller.history.schemas import REASSIGNMENTS
from tests.spark.answers.literals import Answers, Histories, answers, make_time, partition

TO_4 = {"replicas": [4, 1, 2, 3], "adding": [4], "removing": [3]}
TO_5 = {"replicas": [5, 1, 2, 3], "adding": [5], "removing": [3]}
JOINED = {"isr": [1, 2, 3, 4]}
DONE = {"replicas": [4, 1, 2], "adding": [], "removing": [], "isr": [1, 2, 4]}
BACK = {"replicas": [1, 2, 3], "adding": [], "removing": [], "isr": [1, 2, 3]}

CLUSTERS = {
    "done": partition((0, {"replicas": [2, 1, 3]}), (10, TO_4), (40, JOINED), (50, DONE), until=100),
    "cancelled": partition((0, {}), (10, TO_4), (12, JOINED), (40, BACK), until=100),
    "replaced": partition((0, {}), (10, TO_4), (20, TO_5), until=100),
    "runs": partition((0, {}), (10, TO_4), (60, JOINED), until=100),
    "stalled": partition((0, {}), (10, TO_4), (20, JOINED), (25, {"leader": 2}), until=100),
    "found": partition((0, TO_4), (40, DONE), until=100),
    "went on": partition((0, {}), (10, TO_4), (20, None), (30, {}), (45, JOINED), (50, DONE), until=100),
    "ended unseen": partition((0, {}), (10, TO_4), (20, None), (30, DONE), until=100),
    "unknown to the end": partition((0, {}), (10, TO_4), (20, None), until=100),
    "deleted": partition((0, {}), (10, TO_4), until=20, is_last=False),
    "neither": partition((0, {}), (10, TO_4), (20, DONE | {"replicas": [7]}), until=100),
    "twice": partition((0, {}), (10, TO_4), (20, BACK), (30, TO_4), (40, DONE), until=100),
    "no length": partition((0, {}), (10, TO_4), (10, JOINED), (10, DONE), until=100),
    "only removes": partition((0, {}), (10, {"removing": [3]}), (11, {"replicas": [1, 2], "removing": []}), until=100),
    "only the order of the isr": partition((0, {}), (10, TO_4), (30, {"isr": [3, 2, 1]}), (60, DONE), until=100),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Answers:
    options = Options(stalled_after_seconds=60)
    return answers(reassignments(Histories(spark, CLUSTERS).partitions, options), REASSIGNMENTS)


NAMES = ("began", "ended", "outcome", "longest_wait_seconds")


def test_one_is_done_when_its_target_is_assigned(found: Answers) -> None:
    assert found("done", *NAMES) == [(make_time(10), make_time(50), "done", 30)]
    assert found("done", "origin", "target") == [([2, 1, 3], [4, 1, 2])]


def test_one_is_cancelled_when_its_origin_is_assigned(found: Answers) -> None:
    assert found("cancelled", *NAMES) == [(make_time(10), make_time(40), "cancelled", 28)]


def test_another_target_replaces_it(found: Answers) -> None:
    assert found("replaced", "began", "ended", "outcome", "target") == [
        (make_time(10), make_time(20), "replaced", [4, 1, 2]),
        (make_time(20), None, "stalled", [5, 1, 2]),
    ]


def test_one_that_runs_at_the_end_of_history_has_no_end(found: Answers) -> None:
    assert found("runs", *NAMES) == [(make_time(10), None, "running", 50)]


def test_one_whose_isr_has_not_changed_for_too_long_is_stalled(found: Answers) -> None:
    assert found("stalled", *NAMES) == [(make_time(10), None, "stalled", 80)]


def test_where_its_beginning_was_not_seen_the_origin_is_what_it_does_not_add(found: Answers) -> None:
    assert found("found", "began", "origin", "target", "outcome") == [(make_time(0), [1, 2, 3], [4, 1, 2], "done")]


def test_unknown_time_does_not_end_one_that_runs_afterwards(found: Answers) -> None:
    assert found("went on", *NAMES) == [(make_time(10), make_time(50), "done", 35)]


@pytest.mark.parametrize("cluster", ["ended unseen", "unknown to the end"])
def test_one_that_ended_in_unknown_time_ended_unknown(found: Answers, cluster: str) -> None:
    assert found(cluster, *NAMES) == [(make_time(10), make_time(20), "unknown", 10)]


def test_the_topic_may_be_deleted_meanwhile(found: Answers) -> None:
    assert found("deleted", *NAMES) == [(make_time(10), make_time(20), "deleted", 10)]


def test_replicas_that_nobody_asked_for_are_an_unknown_outcome(found: Answers) -> None:
    assert found("neither", "ended", "outcome") == [(make_time(20), "unknown")]


def test_one_that_is_tried_again_is_another(found: Answers) -> None:
    assert found("twice", "began", "outcome") == [(make_time(10), "cancelled"), (make_time(30), "done")]


def test_one_may_be_faster_than_the_clock(found: Answers) -> None:
    assert found("no length", *NAMES) == [(make_time(10), make_time(10), "done", 0)]


def test_one_may_only_remove(found: Answers) -> None:
    assert found("only removes", "origin", "target", "outcome") == [([1, 2, 3], [1, 2], "done")]


def test_another_order_of_the_isr_is_no_progress(found: Answers) -> None:
    assert found("only the order of the isr", "longest_wait_seconds") == [(50,)]
