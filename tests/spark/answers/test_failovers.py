"""Failovers: from when the controller heard that a broker had gone, to each partition's new leader."""

import pytest
from pyspark.sql import SparkSession

from kontroller.history.answers.options import Options
from kontroller.history.answers.outages.failovers import failovers
from kontroller.history.schemas import FAILOVERS
from tests.spark.answers.literals import PROVEN, Answers, Histories, Row, answers, event, make_time, partition, span

GONE = {"correlation_id": "1-5", "cause": "brokers_changed"}


def lose(when: float, number: int, seq: int, **more: object) -> Row:
    return event(when, "broker_removed", broker=number, seq=seq, **GONE) | more


def see(when: float, number: int, seq: int, broker_epoch: int, **more: object) -> Row:
    return event(when, "broker", broker=number, seq=seq, broker_epoch=broker_epoch) | more


def lead(number: int, *elections: tuple[float, int, int], until: float = 100) -> list[Row]:
    """Return a partition that broker 1 led at first. An election is a time, a leader, and the number of the record. All
    of them belong to the event of GONE."""
    steps = [(when, {"leader": leader, "seq": seq} | GONE) for when, leader, seq in elections]
    return partition((0, {"seq": 1}), *steps, until=until, number=number)


DOWN: Row = {"leader": -1, "seq": 51} | GONE
SHUTDOWN: Row = {"correlation_id": "1-4", "cause": "controlled_shutdown"}

CLUSTERS = {
    "within the event": [
        lose(10, 1, 50, took_us=2_000_000),
        *lead(0, (10, 2, 51)),
        *lead(1, (10, -1, 52), (13, 3, 60)),
        *lead(2, (10, -1, 53)),
        *partition((0, {"leader": 2, "seq": 1}), until=100, number=3),
    ],
    "records in the other order": [lose(10, 1, 50), *lead(0, (10, 2, 49))],
    "drained before": [lose(10, 1, 50), *partition((0, {"seq": 1}), (5, {"leader": 2, "seq": 20}), until=100)],
    "led the same again": [lose(10, 1, 50), *lead(0, (10, -1, 51), (30, 1, 60))],
    "isr changed first": [
        lose(10, 1, 50),
        *lead(0, (12, 1, 55), (15, 2, 56)),
        *lead(1, (10, 1, 45), (10, 2, 46)),
        *partition((0, {"seq": 1}), (5, {"isr": [1, 2], "seq": 9}), (11, {"leader": 2, "seq": 60}), until=40, number=2),
    ],
    "many": [lose(10, 1, 50), *(row for n in range(101) for row in lead(n, (10, -1, 51), (10 + n, 2, 60), until=200))],
    "unknown before it moved": [
        lose(10, 1, 50),
        *partition((0, {"seq": 1}), (10, DOWN), (20, None), (30, {"leader": 2, "seq": 70}), until=40),
    ],
    "leaderless in unknown time before it moved": [
        lose(10, 1, 50),
        *partition((0, {"seq": 1}), (10, DOWN), (20, PROVEN), (30, {"leader": 2, "seq": 70}), until=40),
    ],
    "deleted before it moved": [
        lose(10, 1, 50),
        *partition((0, {"seq": 1}), (10, DOWN), until=20, is_last=False),
        *partition((30, {"seq": 80, "leader": 2}), until=40),
    ],
    "another epoch": [
        lose(10, 1, 50, controller_epoch=2),
        *partition((0, {"seq": 1}), (5, None), (6, {"controller_epoch": 2, "leader": 2, "seq": 5}), until=40),
    ],
    "elected in one epoch, lost in the next": [
        lose(10, 1, 3, controller_epoch=2),
        *partition((0, {"seq": 60}), (10, {"controller_epoch": 2, "leader": 2, "seq": 4} | GONE), until=40),
        *partition((0, {"seq": 61}), (12, {"controller_epoch": 2, "leader": 2, "seq": 9}), until=40, number=1),
        *partition((0, {"seq": 62}), until=10, number=2),
        *partition((0, {"seq": 63}), (9, {"controller_epoch": 2, "leader": 2, "seq": 1}), until=40, number=3),
    ],
    "elected in one epoch, unknown, lost in the next": [
        lose(10, 1, 3, controller_epoch=2),
        *partition((0, {"seq": 60}), (5, None), (15, {"controller_epoch": 2, "leader": 2, "seq": 9}), until=40),
        *partition((0, {"seq": 60}), (10, None), (15, {"controller_epoch": 2, "leader": 2, "seq": 9}), until=40, number=1),
    ],
    "announced": [
        see(0, 1, 0, 100),
        lose(10, 1, 50),
        *partition((0, {"seq": 1}), (9, {"leader": 2, "seq": 40} | SHUTDOWN), until=40),
        *lead(1, (10, -1, 51)),
    ],
    "announced before it came back": [
        see(0, 1, 0, 100),
        see(5, 1, 30, 200),
        lose(10, 1, 50),
        *partition((0, {"seq": 1}), (4, {"leader": 2, "seq": 20} | SHUTDOWN), until=40),
        *partition((0, {"leader": 2, "seq": 1}), (6, {"leader": 1, "seq": 35}), (10, DOWN), until=40, number=1),
    ],
    "another was announced": [
        lose(10, 1, 50),
        *partition((0, {"seq": 1, "leader": 3}), (9, {"leader": 2, "seq": 40} | SHUTDOWN), until=40),
        *lead(1, (10, 2, 51)),
    ],
    "bounced": [
        see(0, 1, 0, 100),
        see(10, 1, 50, 200, **GONE),
        *lead(0, (10, 2, 49)),
        *partition((0, {"seq": 1}), (20, {"leader": 3, "seq": 70}), until=40, number=1),
    ],
    "bounced, and lost nothing": [see(0, 1, 0, 100), see(10, 1, 50, 200, **GONE), *lead(0, (20, 1, 70))],
    "went and came by one event": [
        see(0, 1, 0, 100),
        lose(10, 1, 50),
        see(10, 1, 53, 200, **GONE),
        *lead(0, (10, 2, 52)),
        *partition((0, {"seq": 1}), until=40, number=1),
    ],
    "snapshots": [see(0, 1, 0, 100), see(5, 1, 9, 100, snapshot=True), see(10, 1, 10, 100), *lead(0, (10, 2, 50))],
    "twice": [
        lose(10, 1, 50),
        *partition(
            (0, {"seq": 1}),
            (10, {"leader": 2, "seq": 51} | GONE),
            (30, {"leader": 3, "seq": 71, "correlation_id": "1-9"}),
            until=40,
        ),
        lose(29, 2, 70, correlation_id="1-9"),
    ],
}  # fmt: skip

UNKNOWN = {
    "in unknown time": [span(0, 9, last_seq=49), lose(10, 1, 50), span(20, 30, first_seq=51), *lead(0, (25, 2, 60))]
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Answers:
    known = [span(0, 200), span(0, 200, controller_epoch=2)]
    histories = Histories(spark, {name: [*rows, *known] for name, rows in CLUSTERS.items()} | UNKNOWN)
    return answers(failovers(histories.partitions, histories.spans, histories.events, Options()), FAILOVERS)


def test_time_runs_from_when_the_controller_heard_of_it(found: Answers) -> None:
    assert found("within the event", "broker", "lost_at", "cause", "partitions", "moved", "last_moved_at") == [
        (1, make_time(8), "brokers_changed", 3, 2, make_time(13))
    ]
    assert found("within the event", "median_seconds", "max_seconds") == [(3.5, 5)]


def test_it_does_not_matter_which_record_of_an_event_was_written_first(found: Answers) -> None:
    assert found("records in the other order", "lost_at", "partitions", "moved", "max_seconds") == [
        (make_time(10), 1, 1, 0)
    ]


def test_a_broker_that_was_drained_first_led_nothing(found: Answers) -> None:
    assert found("drained before", "partitions", "moved", "last_moved_at", "max_seconds") == [(0, 0, None, None)]


def test_a_partition_may_wait_for_the_same_broker(found: Answers) -> None:
    assert found("led the same again", "moved", "max_seconds") == [(1, 20)]


def test_a_change_that_elects_nobody_is_no_move(found: Answers) -> None:
    assert found("isr changed first", "partitions", "moved", "median_seconds", "max_seconds") == [(3, 3, 1, 5)]


def test_percentiles_are_exact(found: Answers) -> None:
    assert found("many", "partitions", "median_seconds", "p99_seconds", "max_seconds") == [(101, 50, 99, 100)]


@pytest.mark.parametrize("cluster", ["unknown before it moved", "deleted before it moved"])
def test_what_was_not_seen_to_move_has_not_moved(found: Answers, cluster: str) -> None:
    assert found(cluster, "partitions", "moved", "max_seconds") == [(1, 0, None)]


def test_a_move_is_seen_if_there_was_provably_no_leader_before_it(found: Answers) -> None:
    assert found("leaderless in unknown time before it moved", "moved", "max_seconds") == [(1, 20)]


def test_what_it_led_in_an_earlier_epoch_does_not_count(found: Answers) -> None:
    assert found("another epoch", "partitions") == [(0,)]


def test_a_leader_that_was_elected_in_an_earlier_epoch_and_stayed_counts(found: Answers) -> None:
    """The partition whose state was unknown then does not count, nor the one that another broker had taken over
    before."""
    names = ("partitions", "moved", "max_seconds")
    assert found("elected in one epoch, lost in the next", *names) == [(3, 2, 2)]


def test_who_led_across_an_unknown_time_stays_unknown(found: Answers) -> None:
    assert found("elected in one epoch, unknown, lost in the next", "partitions") == [(0,)]


DETECTION = ("partitions", "max_seconds", "detection_seconds", "max_seconds_with_detection")


def test_a_crash_may_have_gone_unnoticed_for_the_session_timeout(found: Answers) -> None:
    assert found("led the same again", *DETECTION) == [(1, 20, 18, 38)]
    assert found("records in the other order", *DETECTION) == [(1, 0, 18, 18)]
    assert found("another was announced", *DETECTION) == [(1, 0, 18, 18)]
    assert found("announced before it came back", *DETECTION) == [(1, None, 18, None)]


def test_a_broker_that_announced_its_end_or_led_nothing_had_not_to_be_noticed(found: Answers) -> None:
    assert found("announced", *DETECTION) == [(1, None, 0, None)]
    assert found("drained before", *DETECTION) == [(0, None, 0, None)]


@pytest.mark.parametrize("cluster", ["bounced", "went and came by one event"])
def test_a_bounced_broker_counts_for_what_it_lost_by_that(found: Answers, cluster: str) -> None:
    assert found(cluster, "broker", "seq", "partitions", "moved") == [(1, 50, 1, 1)]


@pytest.mark.parametrize("cluster", ["bounced, and lost nothing", "snapshots"])
def test_a_broker_that_lost_nothing_did_not_fail(found: Answers, cluster: str) -> None:
    assert found(cluster, "broker") == []


def test_a_broker_that_went_in_unknown_time_has_no_row(found: Answers) -> None:
    assert found("in unknown time", "broker") == []


def test_each_loss_moves_the_partition_again(found: Answers) -> None:
    assert found("twice", "broker", "partitions", "moved", "max_seconds") == [(1, 1, 1, 0), (2, 1, 1, 1)]
