"""The answers about leaders: leadership by day, unclean elections, and the controllers."""

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.controllers import controllers
from kontroller.history.answers.leadership import leadership
from kontroller.history.answers.outages.unclean_elections import unclean_elections
from kontroller.history.schemas import CONTROLLERS, LEADERSHIP, UNCLEAN_ELECTIONS
from tests.spark.answers.literals import (
    DAY,
    Answers,
    Histories,
    answers,
    broker,
    day,
    event,
    make_time,
    partition,
    span,
)

UNCLEAN = {"leader": 2, "isr": [2], "unclean": True, "leader_recovery_state": 1, "cause": "elect_leaders", "seq": 77}
DOWN = {"leader": -1, "isr": [1]}
RECOVERED = {"leader_recovery_state": 0}
BY_7 = {"controller_id": 7}

CLUSTERS = {
    "led": [
        broker(1, None, 0, DAY), broker(2, None, 0, 5), broker(3, None, 0, 2 * DAY), broker(4, None, 10, 11),
        *partition((0, {}), (40, {"leader": 2}), (60, {"leader": -1}), (70, None), (80, {}), until=100),
        *partition((0, {"leader": 3, "replicas": [1, 3]}), (20, {"replicas": [3, 1]}), until=100, number=1),
    ],
    "led over midnight": [broker(1, None, 0, 2 * DAY), *partition((DAY - 10, {}), until=DAY + 20)],
    "nobody led": [broker(1, None, 0, 10), *partition((0, DOWN), until=10)],
    "unclean": partition((0, {"isr": [1, 2]}), (10, DOWN), (20, UNCLEAN), (25, {"isr": [2, 3]}), (30, RECOVERED), until=40),
    "unclean at once": partition((0, {}), (20, UNCLEAN), until=40),
    "recovery is not tracked": partition((0, {}), (20, UNCLEAN | RECOVERED), (25, {"isr": [2, 3]}), until=40),
    "recovered unseen": partition((0, {}), (10, None), (20, DOWN), (21, UNCLEAN), (30, None), (35, RECOVERED), until=40),
    "terms": [
        event(0, "controller_elected", seq=0, **BY_7),
        event(1, "leadership", seq=1, snapshot=True, leader=1, partition_epoch=3, **BY_7),
        event(9, "snapshot_ended", seq=4, **BY_7),
        event(10, "leadership", seq=5, leader=1, partition_epoch=0, **BY_7),
        event(20, "leadership", seq=6, leader=-1, partition_epoch=1, **BY_7),
        event(30, "leadership", seq=7, isr=[1], partition_epoch=2, **BY_7),
        event(40, "controller_resigned", seq=8, **BY_7),
        span(9, 15, ended_by="gap"), span(20, 40, ended_by="resigned"),
        event(50, "controller_elected", controller_epoch=2, seq=0, controller_id=8),
        event(60, "controller_elected", controller_epoch=3, seq=0, controller_id=7),
        span(62.5, 70, controller_epoch=3, ended_by="end"),
        event(70, "controller_alive", controller_epoch=3, seq=1, controller_id=7),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark, CLUSTERS)


@pytest.fixture(scope="module")
def leaders(histories: Histories) -> Answers:
    return answers(leadership(histories.partitions, histories.brokers), LEADERSHIP)


@pytest.fixture(scope="module")
def elections(histories: Histories) -> Answers:
    return answers(unclean_elections(histories.partitions), UNCLEAN_ELECTIONS)


@pytest.fixture(scope="module")
def terms(histories: Histories) -> Answers:
    return answers(controllers(histories.spans, histories.events), CONTROLLERS)


def test_leadership_is_counted_by_broker_and_compared_with_the_mean_of_the_registered(leaders: Answers) -> None:
    names = ("broker", "leader_seconds", "preferred_seconds", "led_as_preferred_seconds", "replica_seconds")
    assert leaders("led", "day", *names) == [
        (day(1), 1, 40, 90 + 20, 40, 90 + 100),
        (day(1), 2, 20, 0, 0, 90),
        (day(1), 3, 100, 80, 80, 90 + 100),
        (day(2), 3, 0, 0, 0, 0),
        (day(1), 4, 0, 0, 0, 0),
    ]
    assert leaders("led", "skew") == [(1.0,), (0.5,), (2.5,), (None,), (0.0,)]


def test_leadership_over_midnight_counts_for_both_days(leaders: Answers) -> None:
    found = leaders("led over midnight", "broker", "day", "leader_seconds")
    assert [row[1:] for row in found if row[0] == 1] == [(day(1), 10), (day(2), 20)]


def test_there_is_no_skew_where_nobody_led(leaders: Answers) -> None:
    assert set(leaders("nobody led", "leader_seconds", "skew")) == {(0, None)}


def test_an_unclean_election_names_what_was_before_and_when_it_had_recovered(elections: Answers) -> None:
    names = ("elected_at", "leader", "isr_before", "leader_before", "recovered_at", "cause", "seq")
    assert elections("unclean", *names) == [(make_time(20), 2, [1], 1, make_time(30), "elect_leaders", 77)]


def test_one_that_has_not_recovered_says_nothing_of_it(elections: Answers) -> None:
    assert elections("unclean at once", "isr_before", "leader_before", "recovered_at") == [([1, 2, 3], 1, None)]


def test_where_recovery_is_not_tracked_nothing_is_said_of_it(elections: Answers) -> None:
    assert elections("recovery is not tracked", "recovered_at") == [(None,)]


def test_nothing_is_concluded_of_an_election_across_unknown_time(elections: Answers) -> None:
    assert elections("recovered unseen", "isr_before", "leader_before", "recovered_at") == [([1], None, None)]


def test_each_term_says_who_and_how_long_it_took_to_take_over(terms: Answers) -> None:
    names = ("controller_epoch", "controller_id", "began", "ended", "ended_by", "takeover_seconds")
    assert terms("terms", *names) == [
        (1, 7, make_time(0), make_time(40), "resigned", None),
        (2, 8, make_time(50), make_time(50), None, None),
        (3, 7, make_time(60), make_time(70), "end", 22.5),
    ]


def test_leader_changes_are_neither_snapshots_nor_creations(terms: Answers) -> None:
    assert terms("terms", "records", "leader_changes") == [(7, 1), (1, 0), (2, 0)]
