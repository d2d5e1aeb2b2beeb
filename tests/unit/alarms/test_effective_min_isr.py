"""`min.insync.replicas` as Kafka applies it: never more than a partition has replicas (`Partition.effectiveMinIsr`)."""

import pytest

from kontroller.history.alarms.records import Rules, Seen
from tests.unit.alarms.watching import (
    alive,
    lead,
    make_assignment,
    make_min_isr,
    new_watch,
    record,
    see_all,
    wait_seconds,
)


@pytest.mark.parametrize(
    ("replicas", "min_isr", "in_sync", "is_under"),
    [(1, 2, 1, False), (2, 2, 1, True), (2, 3, 2, False), (3, 2, 2, False), (3, 2, 1, True), (3, 1, 1, False)],
)
def test_a_partition_is_under_it_with_fewer_in_sync_than_both_say(
    replicas: int, min_isr: int, in_sync: int, is_under: bool
) -> None:
    watch = new_watch()
    see_all(watch, make_min_isr(0, 0, min_isr), make_assignment(1, 0, replicas), lead(2, 0, 1, in_sync))
    assert wait_seconds(watch, 21) == (["under_min_isr raised"] if is_under else [])


def test_it_is_judged_anew_when_replicas_are_added_or_taken_away() -> None:
    watch = new_watch()
    see_all(watch, make_min_isr(0, 0, 2), make_assignment(1, 0, 1), lead(2, 0, 1), make_assignment(3, 5, 2))
    assert wait_seconds(watch, 21) == ["under_min_isr raised"]
    assert see_all(watch, make_assignment(4, 30, 1)) == ["under_min_isr cleared"]


def test_an_assignment_that_comes_late_changes_nothing() -> None:
    watch = new_watch()
    see_all(watch, make_min_isr(0, 0, 2), make_assignment(4, 4, 2), make_assignment(1, 0, 1), lead(5, 5, 1))
    assert wait_seconds(watch, 21) == ["under_min_isr raised"]
    assert see_all(watch, make_assignment(1, 0, 1)) == []


def test_a_topic_that_was_made_anew_has_nothing_of_the_one_before() -> None:
    watch = new_watch()
    see_all(watch, make_assignment(0, 0, 1), lead(1, 0, 1), record(2, 1, "topic_removed", topic="t"))
    see_all(watch, lead(3, 2, 1), make_min_isr(4, 2, 2))
    assert wait_seconds(watch, 21) == ["under_min_isr raised"]


def test_a_snapshot_without_the_assignment_forgets_it_and_one_with_it_keeps_it() -> None:
    watch = new_watch()
    see_all(watch, make_min_isr(0, 0, 2), make_assignment(1, 0, 1), lead(2, 0, 1))
    see_all(watch, record(3, 5, "snapshot_started"), make_min_isr(4, 5, 2), make_assignment(5, 5, 1), lead(6, 5, 1))
    assert see_all(watch, record(7, 5, "snapshot_ended"), alive(8, 15), alive(9, 25), alive(10, 35)) == []
    see_all(
        watch,
        record(11, 36, "snapshot_started"),
        make_min_isr(12, 36, 2),
        lead(13, 36, 1),
        record(14, 36, "snapshot_ended"),
    )
    assert wait_seconds(watch, 21) == ["under_min_isr raised"]


def config(seq: int, at: float, kind: str, broker: int | None, min_isr: int | None = None) -> Seen:
    return record(seq, at, kind, broker=broker, min_isr=min_isr)


def find_min_isr(*configs: Seen) -> int:
    """Return the effective `min.insync.replicas` of a partition that broker 1 leads."""
    watch = new_watch()
    see_all(watch, lead(0, 0, 1), *configs)
    (replicas,) = watch.topics["t"].partitions.values()
    return watch.course.configs.count_needed(watch.topics["t"], replicas, watch.rules)


TOPIC, DYNAMIC = make_min_isr(1, 1, 5), config(2, 1, "broker_config", 1, 4)
DEFAULT, FILE = config(3, 1, "broker_config", None, 3), config(4, 1, "broker_static_config", 1, 2)


def test_the_topic_says_it_then_its_leader_then_all_brokers_then_the_leaders_file() -> None:
    assert find_min_isr(TOPIC, DYNAMIC, DEFAULT, FILE) == 5
    assert find_min_isr(DYNAMIC, DEFAULT, FILE) == 4
    assert find_min_isr(DEFAULT, FILE) == 3
    assert find_min_isr(FILE) == 2
    assert find_min_isr(config(2, 1, "broker_config", 7, 4), config(4, 1, "broker_static_config", 7, 2)) == 1
    assert find_min_isr(DYNAMIC, FILE, config(5, 2, "broker_config_removed", 1)) == 2
    assert find_min_isr(FILE, config(5, 2, "broker_static_config_removed", 1)) == 1
    assert find_min_isr(config(5, 2, "broker_config", 1, 4), config(2, 1, "broker_config", 1, 9)) == 4


def test_who_leads_says_what_is_asked_for_and_it_is_judged_when_that_changes() -> None:
    watch = new_watch()
    see_all(watch, FILE, lead(5, 2, 1), lead(6, 2, 7, partition=1))
    assert wait_seconds(watch, 21) == ["under_min_isr raised"]
    assert see_all(watch, lead(7, 30, 7)) == ["under_min_isr cleared"]
    assert see_all(watch, config(8, 31, "broker_config", 7, 2)) == []
    assert wait_seconds(watch, 21) == ["under_min_isr raised", "under_min_isr raised"]
    assert see_all(watch, config(9, 60, "broker_config_removed", 7)) == [
        "under_min_isr cleared",
        "under_min_isr cleared",
    ]


def test_a_new_term_that_has_not_asked_the_brokers_yet_ends_no_alarm() -> None:
    watch = new_watch()
    see_all(watch, FILE, DYNAMIC, lead(5, 2, 1))
    assert wait_seconds(watch, 21) == ["under_min_isr raised"]
    term = [
        record(0, 30, "snapshot_started", epoch=2),
        lead(1, 30, 1, epoch=2),
        record(2, 30, "snapshot_ended", epoch=2),
    ]
    assert see_all(watch, *term) == []
    assert watch.course.configs.brokers[1].min_isr is None
    assert see_all(watch, config(3, 31, "broker_static_config", 1, 1)._replace(controller_epoch=2)) == [
        "under_min_isr cleared"
    ]


def test_what_no_record_says_is_taken_from_the_rules_and_bounded_as_well() -> None:
    rules = Rules(leaderless_after_us=0, under_min_isr_after_us=0, min_isr=2)
    watch = new_watch(rules)
    see_all(
        watch,
        make_assignment(0, 0, 1),
        lead(1, 0, 1),
        make_assignment(2, 0, 3, partition=1),
        lead(3, 0, 1, partition=1),
    )
    assert [(alarm.partition, alarm.problem) for alarm in watch.wait(1)] == [(1, "under_min_isr")]
