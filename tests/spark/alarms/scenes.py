"""Short histories and the alarms that they should give, for the watch alone, and for Spark with all of them at once.

A scene is a list of batches of records; its name becomes its cluster's. Times are seconds.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

Fields = dict[str, Any]
START_US = 1_700_000_000_000_000


def record(seq: int, at: float, kind: str, *, epoch: int = 1, **fields: Any) -> Fields:
    """Return a row of `events` without its cluster. Missing fields are null."""
    named = {"controller_epoch": epoch, "seq": seq, "event_time_us": START_US + round(at * 1e6), "kind": kind}
    return {**named, "cause": "brokers_changed", **fields}


def lead(
    seq: int, at: float, leader: int, isr: list[int], *, partition: int = 0, topic: str = "t", **fields: Any
) -> Fields:
    return record(seq, at, "leadership", topic=topic, partition=partition, leader=leader, isr=isr, **fields)


def alive(seq: int, at: float, **fields: Any) -> Fields:
    return record(seq, at, "controller_alive", **fields)


def min_isr(seq: int, at: float, wanted: int, **fields: Any) -> Fields:
    return record(seq, at, "topic_config", topic="t", config={"min.insync.replicas": str(wanted)}, **fields)


class Said(NamedTuple):
    """An alarm, with times in seconds."""

    topic: str
    partition: int
    problem: str
    state: str
    began: float
    at: float
    controller_epoch: int
    seq: int


def make_said(
    problem: str, state: str, began: float, at: float, seq: int, *, epoch: int = 1, partition: int = 0
) -> Said:
    return Said("t", partition, problem, state, began, at, epoch, seq)


class Scene(NamedTuple):
    batches: list[list[Fields]]
    alarms: set[Said]

    @property
    def records(self) -> Iterable[Fields]:
        return (one for batch in self.batches for one in batch)


DOWN = make_said("leaderless", "raised", 5, 35, 1)

SCENES = {
    "a_partition_is_leaderless_for_long_and_comes_back": Scene(
        [
            [lead(0, 0, 1, [1, 2]), lead(1, 5, -1, [1])],
            [alive(2, 20), alive(3, 36)],
            [alive(4, 50), lead(5, 60, 1, [1])],
        ],
        {DOWN, make_said("leaderless", "cleared", 5, 60, 5)},
    ),
    "one_is_raised_on_a_quiet_cluster_as_the_controller_is_alive": Scene(
        [[lead(0, 0, 1, [1]), lead(1, 5, -1, [1])], [alive(2, 15)], [alive(3, 25)], [alive(4, 36)]], {DOWN}
    ),
    "one_that_is_exactly_as_long_as_allowed_is_not_longer": Scene(
        [[lead(0, 0, 1, [1]), lead(1, 5, -1, [1])], [alive(2, 35)], [lead(3, 35, 1, [1]), alive(4, 90)]], set()
    ),
    "a_short_one_is_nothing_to_be_told_of": Scene(
        [[lead(0, 0, 1, [1]), lead(1, 5, -1, [1])], [lead(2, 12, 1, [1])], [alive(3, 60)]], set()
    ),
    "a_long_one_that_came_and_went_in_one_batch_is_told_of": Scene(
        [[lead(0, 0, 1, [1]), lead(1, 5, -1, [1]), lead(2, 50, 1, [1])], [alive(3, 60)]],
        {DOWN, make_said("leaderless", "cleared", 5, 50, 2)},
    ),
    "records_that_come_twice_change_nothing": Scene(
        [
            [lead(0, 0, 1, [1]), lead(1, 5, -1, [1]), lead(1, 5, -1, [1])],
            [lead(0, 0, 1, [1]), lead(1, 5, -1, [1]), alive(2, 36)],
            [lead(1, 5, -1, [1]), alive(2, 36), lead(3, 40, 1, [1]), lead(1, 5, -1, [1]), alive(4, 90)],
            [lead(1, 5, -1, [1]), alive(4, 90), alive(5, 99)],
        ],
        {DOWN, make_said("leaderless", "cleared", 5, 40, 3)},
    ),
    "a_deleted_topic_is_no_trouble_any_more": Scene(
        [
            [lead(0, 0, 1, [1]), lead(1, 5, -1, [1])],
            [alive(2, 40), record(3, 41, "topic_removed", topic="t")],
            [lead(1, 5, -1, [1]), alive(4, 99)],
        ],
        {DOWN, make_said("leaderless", "cleared", 5, 41, 3)},
    ),
    "a_deleted_partition_is_no_trouble_any_more": Scene(
        [
            [lead(0, 0, 1, [1]), lead(1, 5, -1, [1])],
            [alive(2, 40), record(3, 41, "leadership_removed", topic="t", partition=0)],
            [alive(4, 99)],
        ],
        {DOWN, make_said("leaderless", "cleared", 5, 41, 3)},
    ),
    "what_was_leaderless_stays_so_through_a_gap_until_a_snapshot_says_otherwise": Scene(
        [
            [lead(0, 0, 1, [1]), lead(1, 5, -1, [1]), record(2, 6, "gap", dropped=3)],
            [alive(5, 36)],
            [record(6, 50, "snapshot_started"), lead(7, 50, 1, [1], snapshot=True), record(8, 50, "snapshot_ended")],
        ],
        {DOWN, make_said("leaderless", "cleared", 5, 50, 7)},
    ),
    "what_a_snapshot_does_not_name_went_while_nobody_wrote": Scene(
        [
            [lead(0, 0, 1, [1]), lead(1, 5, -1, [1]), alive(2, 36)],
            [
                record(0, 45, "controller_elected", epoch=2),
                record(1, 46, "snapshot_started", epoch=2),
                lead(2, 46, 1, [1], partition=1, epoch=2),
            ],
            [record(3, 46, "snapshot_ended", epoch=2), lead(3, 37, -1, [1])],
            [alive(4, 99, epoch=2)],
        ],
        {DOWN, make_said("leaderless", "cleared", 5, 46, 3, epoch=2)},
    ),
    "half_a_snapshot_says_nothing_of_what_it_does_not_name": Scene(
        [
            [lead(0, 0, 1, [1]), lead(1, 5, -1, [1]), alive(2, 36)],
            [record(3, 40, "snapshot_started"), record(4, 40, "gap", dropped=1), record(5, 40, "snapshot_ended")],
            [alive(6, 50), lead(7, 60, 1, [1])],
        ],
        {DOWN, make_said("leaderless", "cleared", 5, 60, 7)},
    ),
    "a_new_controller_finds_what_the_old_one_left_and_time_is_counted_from_then": Scene(
        [
            [lead(0, 0, 1, [1]), lead(1, 5, -1, [1])],
            [
                record(0, 20, "controller_elected", epoch=2),
                record(1, 20, "snapshot_started", epoch=2),
                lead(2, 20, -1, [1], epoch=2),
                record(3, 20, "snapshot_ended", epoch=2),
            ],
            [alive(4, 36, epoch=2)],
        ],
        {DOWN},
    ),
    "too_few_replicas_in_sync": Scene(
        [
            [min_isr(0, 0, 2), lead(1, 0, 1, [1, 2]), lead(2, 5, 1, [1])],
            [alive(3, 40)],
            [lead(4, 50, -1, [1]), lead(5, 55, 1, [1, 2])],
        ],
        {make_said("under_min_isr", "raised", 5, 25, 2), make_said("under_min_isr", "cleared", 5, 50, 4)},
    ),
    "less_is_wanted_of_a_topic_and_its_trouble_is_over": Scene(
        [[min_isr(0, 0, 2), lead(1, 5, 1, [1])], [alive(2, 40)], [min_isr(3, 50, 1)]],
        {make_said("under_min_isr", "raised", 5, 25, 1), make_said("under_min_isr", "cleared", 5, 50, 3)},
    ),
    "a_topic_has_no_configuration_of_its_own_any_more": Scene(
        [[min_isr(0, 0, 2), lead(1, 5, 1, [1])], [alive(2, 40)], [record(3, 50, "topic_config_removed", topic="t")]],
        {make_said("under_min_isr", "raised", 5, 25, 1), make_said("under_min_isr", "cleared", 5, 50, 3)},
    ),
    "the_default_of_all_brokers_holds_where_the_topic_says_nothing": Scene(
        [
            [lead(0, 0, 1, [1]), lead(1, 0, 1, [1, 2], partition=1)],
            [record(2, 5, "broker_config", config={"min.insync.replicas": "2"})],
            [record(3, 6, "broker_config", broker=9, config={"min.insync.replicas": "3"}), alive(4, 30)],
            [record(5, 40, "broker_config_removed")],
        ],
        {make_said("under_min_isr", "raised", 5, 25, 2), make_said("under_min_isr", "cleared", 5, 40, 5)},
    ),
    "one_stamp_that_is_ten_hours_ahead_stops_no_alarm": Scene(
        [
            [lead(0, 0, 1, [1]), alive(1, 36_000), alive(2, 2)],
            [lead(3, 5, -1, [1]), alive(4, 20)],
            [alive(5, 36)],
        ],
        {make_said("leaderless", "raised", 5, 35, 3)},
    ),
    "a_controller_takes_over_whose_clock_is_hours_behind": Scene(
        [
            [lead(0, 0, 1, [1]), alive(1, 19)],
            [record(0, -7200, "controller_elected", epoch=2), lead(1, -7195, -1, [1], epoch=2)],
            [alive(2, -7180, epoch=2), alive(3, -7164, epoch=2)],
        ],
        {make_said("leaderless", "raised", -7195, -7165, 1, epoch=2)},
    ),
    "a_partition_of_one_replica_needs_no_second_one": Scene(
        [
            [
                min_isr(0, 0, 2),
                record(1, 0, "assignment", topic="t", partition=0, replicas=[1]),
                lead(2, 0, 1, [1]),
                record(3, 0, "assignment", topic="t", partition=1, replicas=[1, 2]),
                lead(4, 5, 1, [1], partition=1),
            ],
            [alive(5, 40)],
        ],
        {make_said("under_min_isr", "raised", 5, 25, 4, partition=1)},
    ),
    "what_the_leader_is_configured_to_and_what_its_file_says": Scene(
        [
            [lead(0, 0, 1, [1]), lead(1, 0, 2, [2], partition=1), lead(2, 0, 3, [3], partition=2)],
            [
                record(3, 5, "broker_config", broker=1, config={"min.insync.replicas": "2"}),
                record(4, 5, "broker_static_config", broker=2, config={"min.insync.replicas": "2"}),
            ],
            [alive(5, 20), alive(6, 30), record(7, 35, "broker_static_config_removed", broker=2)],
        ],
        {
            make_said("under_min_isr", "raised", 5, 25, 3),
            make_said("under_min_isr", "raised", 5, 25, 4, partition=1),
            make_said("under_min_isr", "cleared", 5, 35, 7, partition=1),
        },
    ),
    "a_cluster_that_is_a_day_behind_the_others": Scene(
        [
            [lead(0, -86_400, 1, [1]), lead(1, -86_395, -1, [1])],
            [alive(2, -86_380), lead(3, -86_370, 1, [1])],
            [lead(4, -86_360, -1, [1]), alive(5, -86_320)],
        ],
        {make_said("leaderless", "raised", -86_360, -86_330, 4)},
    ),
}
"""The expected alarms after 30 seconds without a leader, and after 20 with too few members in sync. A controller writes
every 20 seconds, and is silent after 60."""
