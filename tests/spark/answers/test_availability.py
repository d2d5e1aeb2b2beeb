"""Availability and downtime: clipped to days, the unknown neither up nor down, deleted topics gone."""

import pytest
from pyspark.sql import DataFrame, SparkSession

from kontroller.history.answers.options import Options
from kontroller.history.answers.outages.availability import availability, downtime_by_cause
from kontroller.history.answers.outages.detection import find_dead_leaderships
from kontroller.history.answers.outages.incidents import incidents
from kontroller.history.schemas import AVAILABILITY, DOWNTIME_BY_CAUSE
from tests.spark.answers.literals import DAY, Answers, Histories, answers, day, event, partition, span

NO_LEADER = {"leader": -1, "isr": [1], "cause": "brokers_changed"}
TOO_FEW = {"leader": 1, "isr": [1], "cause": "alter_partition"}
HEALED = {"leader": 1, "isr": [1, 2, 3], "cause": "alter_partition"}
BY_IT = {"correlation_id": "1-5"}
ELSEWHERE = {"leader": 2, "isr": [2, 3], "cause": "broker_failed"} | BY_IT
DIED = [
    span(0, 1000),
    event(99, "broker_removed", broker=1, correlation_id="1-5", seq=5000, took_us=40_000),
]
"""The failure of broker 1. The controller heard of it 40 ms before it had elected other leaders."""

CLUSTERS = {
    "over two midnights": partition((0, {}), (DAY - 100, NO_LEADER), (2 * DAY + 50, HEALED), until=3 * DAY),
    "ends at midnight": partition((DAY - 10, NO_LEADER), until=DAY),
    "two partitions": [
        *partition((0, {}), (40, NO_LEADER), (50, TOO_FEW), (70, HEALED), until=100, topic="shop.orders"),
        *partition((0, {}), until=100, topic="shop.orders", number=1),
    ],
    "unknown": partition((0, {}), (10, NO_LEADER), (20, None), (60, HEALED), until=100),
    "nothing known": partition((0, None), until=100),
    "deleted": partition((0, {}), (10, NO_LEADER), until=20, is_last=False),
    "created again": [
        *partition((0, {}), (10, NO_LEADER), until=20, is_last=False),
        *partition((50, {"topic_id": "other"}), until=80),
    ],
    "no length": partition((0, {}), (50, NO_LEADER), (50, HEALED), until=100),
    "never led": partition((0, {"leader": None, "isr": None}), (1, HEALED), until=10),
    "min isr was raised": partition((0, {"isr": [1, 2]}), (30, {"min_insync_replicas": 3}), until=40),
    "one of three died": [
        *DIED,
        *partition((0, {}), (99, ELSEWHERE), until=1000),
        *partition((0, {"leader": 2}), until=1000, number=1),
    ],
    "died under min isr": [*DIED, *partition((0, {}), (90, TOO_FEW), (99, ELSEWHERE), until=1000)],
    "died after its election": [
        *DIED,
        *partition((0, {"leader": 2}), (97, HEALED), (99, NO_LEADER | BY_IT), until=109),
    ],
    "died after the unknown": [*DIED, *partition((0, {}), (10, None), (95, {}), (99, ELSEWHERE), until=100)],
    "died before midnight": [
        span(0, 2 * DAY),
        event(DAY + 2, "broker_removed", broker=1, correlation_id="1-5", seq=5000),
        *partition((0, {}), (DAY + 3, ELSEWHERE), until=2 * DAY),
    ],
    "elected late": [*DIED, *partition((0, {}), (104, {"leader": 2, "seq": 5020}), until=200)],
    "came back and led on": [
        *DIED,
        event(105, "broker", broker=1, seq=5010, broker_epoch=9),
        *partition((0, {}), (150, {"leader": 2, "seq": 5020}), until=200),
    ],
    "other names": [
        *partition((0, {}), until=1, topic="team-blue-orders"),
        *partition((0, {}), until=1, topic="__consumer_offsets"),
    ],
}


@pytest.fixture(scope="module")
def histories(spark: SparkSession) -> Histories:
    return Histories(spark, CLUSTERS)


@pytest.fixture(scope="module")
def found(histories: Histories) -> Answers:
    return answers(available(histories, Options()), AVAILABILITY)


def available(histories: Histories, options: Options) -> DataFrame:
    dead = find_dead_leaderships(histories.partitions, histories.spans, histories.events, options)
    return availability(histories.partitions, dead, options)


@pytest.fixture(scope="module")
def downtime(histories: Histories) -> Answers:
    caused = downtime_by_cause(incidents(histories.partitions, histories.spans), Options())
    return answers(caused, DOWNTIME_BY_CAUSE)


def test_an_interval_over_two_midnights_counts_for_three_days(found: Answers) -> None:
    assert found("over two midnights", "day", "partition_seconds", "leaderless_seconds", "availability") == [
        (day(1), DAY, 100, 1 - 100 / DAY),
        (day(2), DAY, DAY, 0),
        (day(3), DAY, 50, 1 - 50 / DAY),
    ]


def test_what_ends_at_midnight_has_no_part_in_the_next_day(found: Answers) -> None:
    assert found("ends at midnight", "day", "leaderless_seconds") == [(day(1), 10)]


def test_the_time_of_all_partitions_is_what_the_downtime_is_measured_by(found: Answers) -> None:
    names = ("namespace", "partitions", "partition_seconds", "leaderless_seconds", "under_min_isr_seconds")
    assert found("two partitions", *names) == [("shop", 2, 200, 10, 20)]
    assert found("two partitions", "availability", "write_availability") == [(1 - 10 / 200, 1 - 30 / 200)]


def test_unknown_time_is_neither_up_nor_down(found: Answers) -> None:
    names = ("partition_seconds", "leaderless_seconds", "unknown_seconds", "availability")
    assert found("unknown", *names) == [(100, 10, 40, 1 - 10 / 60)]


def test_where_nothing_is_known_there_is_no_availability(found: Answers) -> None:
    names = ("partition_seconds", "unknown_seconds", "availability", "write_availability")
    assert found("nothing known", *names) == [(100, 100, None, None)]


def test_a_deleted_partition_does_not_count_any_more(found: Answers) -> None:
    assert found("deleted", "day", "partition_seconds", "availability") == [(day(1), 20, 0.5)]


def test_a_topic_that_was_created_again_does_not_exist_in_between(found: Answers) -> None:
    names = ("partitions", "partition_seconds", "leaderless_seconds", "unknown_seconds")
    assert found("created again", *names) == [(1, 50, 10, 0)]


def test_an_interval_without_length_is_no_downtime(found: Answers, downtime: Answers) -> None:
    assert found("no length", "partition_seconds", "leaderless_seconds", "availability") == [(100, 0, 1)]
    assert downtime("no length", "cause") == []


def test_a_partition_that_never_had_a_leader_is_leaderless(found: Answers) -> None:
    assert found("never led", "leaderless_seconds", "under_min_isr_seconds") == [(1, 0)]


def test_min_insync_replicas_counts_as_it_was_then(found: Answers) -> None:
    assert found("min isr was raised", "leaderless_seconds", "under_min_isr_seconds") == [(0, 10)]


def test_the_namespace_is_the_text_before_the_first_dot_or_what_the_user_says(
    found: Answers, histories: Histories
) -> None:
    assert found("other names", "topic", "namespace") == [("__consumer_offsets", ""), ("team-blue-orders", "")]
    own = Options(namespaces=(("^team-([a-z]+)-", "$1"), ("^__", "internal")))
    named = answers(available(histories, own), AVAILABILITY)
    assert named("other names", "topic", "namespace") == [
        ("__consumer_offsets", "internal"),
        ("team-blue-orders", "blue"),
    ]
    assert named("two partitions", "namespace") == [("shop",)]


def test_downtime_goes_to_what_began_it_and_to_the_days_on_which_it_was(downtime: Answers) -> None:
    names = ("day", "cause", "leaderless_seconds", "under_min_isr_seconds", "partitions")
    assert downtime("over two midnights", *names) == [
        (day(1), "brokers_changed", 100, 0, 1),
        (day(2), "brokers_changed", DAY, 0, 1),
        (day(3), "brokers_changed", 50, 0, 1),
    ]
    assert downtime("two partitions", *names) == [
        (day(1), "alter_partition", 0, 20, 1),
        (day(1), "brokers_changed", 10, 0, 1),
    ]


DETECTED = ("leaderless_seconds", "detection_seconds", "availability", "availability_with_detection")


def test_a_crash_counts_apart_with_the_time_that_it_may_have_gone_unnoticed(found: Answers) -> None:
    [row] = found("one of three died", *DETECTED)
    assert row == pytest.approx((0, 18.04, 1, 1 - 18.04 / 2000))


def test_time_under_min_isr_does_not_count_twice_for_writers(found: Answers) -> None:
    names = ("under_min_isr_seconds", "detection_seconds", "detection_writable_seconds")
    [row] = found("died under min isr", *names, "write_availability", "write_availability_with_detection")
    assert row == pytest.approx((9, 18.04, 9.04, 1 - 9 / 1000, 1 - 18.04 / 1000))


def test_a_leader_was_not_dead_before_it_was_elected(found: Answers) -> None:
    assert found("died after its election", *DETECTED) == [pytest.approx((10, 2, 1 - 10 / 109, 1 - 12 / 109))]


def test_unknown_time_is_not_called_dead(found: Answers) -> None:
    assert found("died after the unknown", "unknown_seconds", "detection_seconds") == [(85, 4)]


def test_the_time_until_a_crash_was_noticed_counts_for_the_days_in_which_it_was(found: Answers) -> None:
    assert found("died before midnight", "day", "detection_seconds") == [(day(1), 16), (day(2), 3)]


def test_a_dead_leader_counts_until_another_is_elected_or_it_is_back(found: Answers) -> None:
    assert found("elected late", "detection_seconds") == [(pytest.approx(104 - 99 + 18.04),)]
    assert found("came back and led on", "detection_seconds") == [(pytest.approx(105 - 99 + 18.04),)]


def test_options_that_mean_nothing_are_refused_with_what_to_change() -> None:
    with pytest.raises(ValueError, match=r"'\(' is not a regular expression.*correct it"):
        Options(namespaces=(("(", "x"),))
    with pytest.raises(ValueError, match="stalled_after_seconds is 0; give a number above 0"):
        Options(stalled_after_seconds=0)
    with pytest.raises(ValueError, match="broker_session_timeout_ms is -1; give the brokers'"):
        Options(broker_session_timeout_ms=-1)
