"""Exposure: one failure from loss, by replica or by rack, and how many at once. Racks as they were then."""

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.outages.exposure import exposure
from kontroller.history.answers.outages.rack_availability import rack_availability
from kontroller.history.schemas import EXPOSURE, RACK_AVAILABILITY
from tests.spark.answers.literals import DAY, Answers, Histories, Row, answers, broker, day, partition

ALL, IN_A, ALONE = {"isr": [1, 2, 3]}, {"isr": [1, 2]}, {"isr": [1]}
RACKS = [broker(1, "a", 0, 9 * DAY), broker(2, "a", 0, 9 * DAY), broker(3, "b", 0, 9 * DAY)]


def expose_partition(number: int, began: float, ended: float) -> list[Row]:
    return partition((0, ALL), (began, ALONE), (ended, ALL), until=100, number=number)


CLUSTERS = {
    "by replica and by rack": [*RACKS, *partition((0, ALL), (10, IN_A), (30, ALONE), (35, ALL), until=100)],
    "leaderless": [*RACKS, *partition((0, ALONE | {"leader": -1}), until=10)],
    "one replica": [*RACKS, *partition((0, {"replicas": [1], "isr": [1]}), until=10)],
    "assigned to one rack": [*RACKS, *partition((0, {"replicas": [1, 2], "isr": [1, 2]}), until=10)],
    "no racks": [broker(1, None, 0, 100), broker(2, None, 0, 100), *partition((0, IN_A), until=10)],
    "no brokers": partition((0, IN_A), until=10),
    "one after the other": [*expose_partition(0, 10, 20), *expose_partition(1, 20, 30), *expose_partition(2, 25, 26)],
    "other topics": [*expose_partition(0, 10, 20), *partition((0, ALONE), until=100, topic="other")],
    "over midnight": [*expose_partition(0, 10, 20), *partition((0, ALL), (50, ALONE), until=2 * DAY, number=1)],
    "moved to another rack": [
        broker(1, "a", 0, 50), broker(2, "b", 0, 40), broker(2, "a", 40, 60, broker_epoch=2), broker(3, "b", 0, 99),
        *partition((0, IN_A), until=100),
    ],
    "was away": [broker(1, "a", 30, 100), broker(2, "a", 0, 5), broker(3, "b", 0, 100), *partition((0, IN_A), until=50)],
    "unknown": [*RACKS, *partition((0, IN_A), (10, None), (30, ALONE), until=35)],
}  # fmt: skip


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark, CLUSTERS)


@pytest.fixture(scope="module")
def found(histories: Histories) -> Answers:
    return answers(exposure(histories.partitions, histories.brokers), EXPOSURE)


@pytest.fixture(scope="module")
def racks(histories: Histories) -> Answers:
    return answers(rack_availability(histories.partitions, histories.brokers), RACK_AVAILABILITY)


NAMES = ("one_replica_seconds", "one_rack_seconds", "known_seconds", "most_partitions")
RACK = ("rack", "replica_seconds", "out_of_sync_seconds", "leader_seconds", "unknown_seconds")


def test_one_replica_and_one_rack_are_told_apart(found: Answers) -> None:
    assert found("by replica and by rack", *NAMES) == [(5, 20, 100, 1)]


def test_a_partition_that_has_one_replica_left_is_exposed_with_or_without_a_leader(found: Answers) -> None:
    assert found("leaderless", *NAMES) == [(10, 0, 10, 1)]


def test_a_partition_that_has_one_replica_only_is_always_exposed(found: Answers) -> None:
    assert found("one replica", *NAMES) == [(10, 0, 10, 1)]


@pytest.mark.parametrize("cluster", ["assigned to one rack", "no racks", "no brokers"])
def test_one_rack_is_no_exposure_of_what_was_never_in_two(found: Answers, cluster: str) -> None:
    assert found(cluster, *NAMES) == [(0, 0, 10, 0)]


def test_what_ends_when_the_next_begins_is_not_exposed_at_the_same_moment(found: Answers) -> None:
    assert found("one after the other", *NAMES) == [(21, 0, 300, 2)]


def test_each_topic_is_counted_for_itself(found: Answers) -> None:
    assert found("other topics", "topic", *NAMES) == [("other", 100, 0, 100, 1), ("t", 10, 0, 100, 1)]


def test_what_lasts_over_midnight_is_exposed_on_both_days(found: Answers) -> None:
    assert found("over midnight", "day", *NAMES) == [
        (day(1), 10 + DAY - 50, 0, 100 + DAY, 1),
        (day(2), DAY, 0, DAY, 1),
    ]


def test_a_rack_counts_as_it_was_then(found: Answers, racks: Answers) -> None:
    assert found("moved to another rack", *NAMES) == [(0, 60, 100, 1)]
    assert racks("moved to another rack", *RACK) == [("a", 160, 0, 100, 0), ("b", 140, 100, 0, 0)]


def test_a_broker_that_is_not_registered_is_in_the_rack_of_its_nearest_registration(found: Answers) -> None:
    assert found("was away", *NAMES) == [(0, 50, 50, 1)]


def test_unknown_time_exposes_nothing_and_counts_for_the_racks_that_had_the_replicas(
    found: Answers, racks: Answers
) -> None:
    assert found("unknown", *NAMES) == [(5, 10, 15, 1)]
    assert racks("unknown", *RACK) == [("a", 70, 5, 15, 40), ("b", 35, 15, 0, 20)]


def test_replicas_of_brokers_without_a_rack_are_together(racks: Answers) -> None:
    assert racks("no racks", *RACK) == [("", 30, 10, 10, 0)]
    assert racks("no brokers", *RACK) == [("", 30, 10, 10, 0)]
