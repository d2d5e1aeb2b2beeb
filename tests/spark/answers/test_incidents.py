"""Incidents: one row as long as the problem lasts, with what began and what ended it."""

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.outages.incidents import incidents
from kontroller.history.schemas import INCIDENTS
from tests.spark.answers.literals import PROVEN, Answers, Histories, answers, make_time, partition, span

DOWN = {"leader": -1, "isr": [1], "cause": "brokers_changed", "correlation_id": "1-7", "partition_epoch": 5}
FEWER = {"leader": 1, "isr": [1], "cause": "alter_partition", "correlation_id": "1-8", "partition_epoch": 6}
HEALED = {"leader": 1, "isr": [1, 2, 3], "cause": "healed", "correlation_id": "1-9", "partition_epoch": 9}
SEEN_AGAIN = {"cause": "controller_failover", "correlation_id": "2-0", "controller_epoch": 2}

CLUSTERS = {
    "changes within": partition((0, {}), (10, FEWER), (20, FEWER | {"isr": [], "cause": "x"}), (30, HEALED), until=40),
    "one after the other": partition((0, {}), (10, DOWN), (20, FEWER), (30, HEALED), until=40),
    "back and forth": partition((0, {}), (10, DOWN), (20, HEALED), (25, DOWN), (26, HEALED), until=40),
    "no length": partition((0, {}), (10, DOWN), (10, HEALED), (10, DOWN), (10, HEALED), until=40),
    "to the end": partition((0, {}), (10, DOWN), until=40),
    "deleted": partition((0, {}), (10, DOWN), until=40, is_last=False),
    "created again": [
        *partition((0, {}), (10, DOWN), until=40, is_last=False),
        *partition((40.5, DOWN | {"topic_id": "other", "cause": "create_topics"}), until=50),
    ],
    "created again at once": [
        *partition((0, {}), (10, DOWN), until=40, is_last=False),
        *partition((40, DOWN | {"topic_id": "other", "cause": "create_topics"}), until=50),
    ],
    "unknown at once": partition((0, {}), (10, DOWN), (10, None), (10, HEALED), until=40),
    "found": [*partition((5, DOWN | {"cause": "controller_failover"}), (10, HEALED), until=40), span(5, 40)],
    "created during a span": [*partition((6, DOWN | {"cause": "create_topics"}), (10, HEALED), until=40), span(5, 40)],
    "nothing was written": [
        *partition(
            (0, {}), (10, DOWN), (20, None), (30, SEEN_AGAIN), (31, None), (32, SEEN_AGAIN), (35, HEALED), until=40
        ),
        *(span(0, 20), span(30, 31), span(32, 40)),
    ],
    "proven": [
        *partition((0, {}), (10, DOWN), (20, PROVEN), (30, SEEN_AGAIN), (32, PROVEN), (35, HEALED), until=40),
        *(span(0, 20), span(30, 32), span(35, 40)),
    ],
    "proven for a part": [
        *partition((0, {}), (10, DOWN), (20, None), (30, SEEN_AGAIN), (32, PROVEN), (35, HEALED), until=40),
        *(span(0, 20), span(30, 32), span(35, 40)),
    ],
    "something was written": [
        *partition((0, {}), (10, DOWN), (20, None), (30, SEEN_AGAIN | {"partition_epoch": 7}), until=40),
        *(span(0, 20), span(30, 40)),
    ],
    "unknown to the end": partition((0, {}), (10, DOWN), (20, None), until=40),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Answers:
    histories = Histories(spark, CLUSTERS)
    return answers(incidents(histories.partitions, histories.spans), INCIDENTS)


def test_an_incident_lasts_as_long_as_its_problem(found: Answers) -> None:
    assert found("changes within", "problem", "began", "ended", "cause", "correlation_id", "ended_by") == [
        ("under_min_isr", make_time(10), make_time(30), "alter_partition", "1-8", "healed")
    ]


def test_another_problem_is_another_incident(found: Answers) -> None:
    assert found("one after the other", "problem", "began", "ended", "cause", "ended_by") == [
        ("leaderless", make_time(10), make_time(20), "brokers_changed", "alter_partition"),
        ("under_min_isr", make_time(20), make_time(30), "alter_partition", "healed"),
    ]


def test_a_problem_that_comes_back_is_another_incident(found: Answers) -> None:
    assert found("back and forth", "began", "ended") == [(make_time(10), make_time(20)), (make_time(25), make_time(26))]


def test_incidents_without_length_are_told_apart_by_their_records(found: Answers) -> None:
    rows = found("no length", "began", "ended", "seq")
    assert [row[:2] for row in rows] == [(make_time(10), make_time(10))] * 2
    assert rows[0][2] < rows[1][2]


def test_one_that_lasts_to_the_end_of_history_says_so(found: Answers) -> None:
    assert found("to the end", "ended", "is_last", "ended_by") == [(make_time(40), True, None)]


def test_the_deletion_of_the_topic_ends_it(found: Answers) -> None:
    assert found("deleted", "ended", "is_last", "ended_by") == [(make_time(40), False, "topic_deleted")]


def test_a_topic_of_the_same_name_begins_anew(found: Answers) -> None:
    names = ("began", "cause", "ended_by")
    before = (make_time(10), "brokers_changed", "topic_deleted")
    assert found("created again", *names) == [before, (make_time(40.5), "create_topics", None)]
    assert found("created again at once", *names) == [before, (make_time(40), "create_topics", None)]


def test_nobody_knows_what_began_a_problem_that_a_snapshot_found(found: Answers) -> None:
    assert found("found", "began", "cause") == [(make_time(5), "unknown")]
    assert found("created during a span", "began", "cause") == [(make_time(6), "create_topics")]


def test_the_cause_outlives_unknown_time_in_which_nothing_was_written(found: Answers) -> None:
    assert found("nothing was written", "began", "ended", "cause", "correlation_id", "ended_by") == [
        (make_time(10), make_time(20), "brokers_changed", "1-7", None),
        (make_time(30), make_time(31), "brokers_changed", "1-7", None),
        (make_time(32), make_time(35), "brokers_changed", "1-7", "healed"),
    ]


def test_an_incident_lasts_through_unknown_time_in_which_there_was_provably_no_leader(found: Answers) -> None:
    names = ("began", "ended", "cause", "correlation_id", "ended_by")
    assert found("proven", *names) == [(make_time(10), make_time(35), "brokers_changed", "1-7", "healed")]
    assert found("proven for a part", *names) == [
        (make_time(10), make_time(20), "brokers_changed", "1-7", None),
        (make_time(30), make_time(35), "brokers_changed", "1-7", "healed"),
    ]


def test_the_cause_is_unknown_where_something_was_written_meanwhile(found: Answers) -> None:
    assert found("something was written", "began", "cause") == [
        (make_time(10), "brokers_changed"),
        (make_time(30), "unknown"),
    ]


def test_unknown_time_ends_it_without_saying_by_what(found: Answers) -> None:
    assert found("unknown to the end", "ended", "ended_by") == [(make_time(20), None)]
    assert found("unknown at once", "ended", "ended_by") == [(make_time(10), None)]
