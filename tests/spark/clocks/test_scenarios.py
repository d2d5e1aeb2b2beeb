"""Histories with wrong clocks or silent writers, and the expected result, second by second."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import pytest
from pyspark.sql import SparkSession

from tests.spark.clocks.folded import Folded, fold_journals
from tests.spark.clocks.journals import START_S, Journal

HOUR: Final = 3600
MINUTE: Final = 60
TO_1970: Final = -START_S


class Case(NamedTuple):
    """A journal; the states of partition 0 in seconds of the right clock (None: unknown); the findings."""

    journal: Journal
    states: Sequence[tuple[float, float, int | None]]
    findings: Mapping[str, int] = {}


def ahead_and_dead() -> Case:
    journal = Journal(alive_s=600).begin(ahead_s=20 * HOUR).live(HOUR).wait(MINUTE)
    journal.begin().live(10 * MINUTE).lead(0, -1).live(30 * MINUTE).lead(0, 2).live(25 * HOUR)
    began = 61 * MINUTE
    states = [(began, began + 600, 1), (began + 600, began + 2400, -1), (began + 2400, began + 2400 + 25 * HOUR, 2)]
    return Case(journal, states, {"clock_not_believed": 14})


def one_stamp_ahead() -> Case:
    journal = Journal().begin().live(100).lead(0, -1).wait(1).lead(0, 2, off_s=10 * HOUR).wait(4).alive().live(100)
    return Case(journal, [(0, 100, 1), (100, 105, None), (105, 205, 2)], {"clock_not_believed": 1})


def boot_in_1970() -> Case:
    journal = Journal().begin().live(100).wait(20).begin(ahead_s=TO_1970).lead(0, 2).live(20)
    journal.set_clock(0).wait(1).live(100)
    return Case(journal, [(0, 100, 1), (100, 151, None), (151, 241, 2)], {"clock_not_believed": 11})


def first_boot_in_1970() -> Case:
    journal = Journal().begin(ahead_s=TO_1970).lead(0, 2).live(20).set_clock(0).wait(1).live(100)
    return Case(journal, [(31, 121, 2)], {"clock_not_believed": 11})


def last_stamps_in_2038() -> Case:
    journal = Journal().begin().live(100).set_clock(12 * 366 * 24 * HOUR).lead(0, 2).live(30)
    return Case(journal, [(0, 100, 1)], {"clock_not_believed": 4})


def recorder_frozen() -> Case:
    journal = Journal(is_recorded=True).begin().live(100).wait(5 * HOUR).lead(0, 2, cause="unobserved").live(100)
    woken = 100 + 5 * HOUR
    return Case(journal, [(0, 100, 1), (100, woken, None), (woken, woken + 100, 2)], {"silence": 1})


def recorder_blind() -> Case:
    """The recorder is blind for less time than counts as silence."""
    journal = Journal(is_recorded=True).begin().live(100).wait(30).lead(0, 2, cause="unobserved")
    journal.lead(1, 2, cause="unobserved").live(100)
    return Case(journal, [(0, 100, 1), (100, 130, None), (130, 230, 2)])


def controller_frozen() -> Case:
    journal = Journal().begin().live(100).lead(0, -1).wait(5 * HOUR).alive().live(100).lead(0, 2).live(10)
    woken = 100 + 5 * HOUR
    return Case(journal, [(0, 100, 1), (100, woken + 100, -1), (woken + 100, woken + 110, 2)], {"silence": 1})


def freeze_while_leaderless(seconds: float = HOUR, **how: Any) -> Journal:
    """Partition 0 has no leader, and its writer is frozen for so long."""
    return Journal(**how).begin().live(100).lead(0, -1).wait(seconds)


def elect_after_a_missing_version() -> Case:
    journal = freeze_while_leaderless().alive().live(100).know(0, 1).lead(0, 2).live(10)
    woken = 100 + HOUR
    states = [(0, 100, 1), (100, woken, None), (woken, woken + 100, -1), (woken + 100, woken + 110, 2)]
    return Case(journal, states, {"silence": 1})


def never_written_again() -> Case:
    """Nothing shows that a frozen controller was still the only one when it woke."""
    woken = 100 + HOUR
    states = [(0, 100, 1), (100, woken, None), (woken, woken + 100, -1)]
    return Case(freeze_while_leaderless().alive().live(100), states, {"silence": 1})


def find_leaderless_in_the_next_term() -> Case:
    journal = freeze_while_leaderless().begin().live(20).lead(0, 2).live(10)
    elected = 120 + HOUR
    return Case(journal, [(0, 100, 1), (100, elected, -1), (elected, elected + 10, 2)])


def find_led_in_the_next_term() -> Case:
    began = 100 + HOUR
    return Case(
        freeze_while_leaderless().know(0, 2).begin().live(20),
        [(0, 100, 1), (100, began, None), (began, began + 20, 2)],
    )


def lead_and_leave_unseen() -> Case:
    began = 100 + HOUR
    return Case(
        freeze_while_leaderless().know(0, 2).know(0, -1).begin().live(20),
        [(0, 100, 1), (100, began, None), (began, began + 20, -1)],
    )


def find_leaderless_after_missing_records() -> Case:
    return Case(
        Journal().begin().live(100).lead(0, -1).wait(30).gap(5).snapshot().live(20),
        [(0, 100, 1), (100, 150, -1)],
        {"gap": 5},
    )


def replace_while_frozen() -> Case:
    """The next controller elects a leader within a minute. The frozen one wakes much later, and resigns."""
    journal = freeze_while_leaderless().resign().wait(30 - HOUR).begin().live(20).lead(0, 2).live(HOUR)
    return Case(journal, [(0, 100, 1), (100, 150, -1), (150, 150 + HOUR, 2)])


def create_again_while_frozen() -> Case:
    began = 100 + HOUR
    return Case(
        freeze_while_leaderless().recreate().begin().live(20),
        [(0, 100, 1), (100, began, None), (began, began + 20, -1)],
    )


def set_back_while_frozen() -> Case:
    """By the clock the silence was half an hour shorter."""
    journal = freeze_while_leaderless().set_clock(-HOUR / 2).alive().live(100).lead(0, 2).live(10)
    elected = 200 + HOUR / 2
    return Case(journal, [(0, 100, 1), (100, elected, -1), (elected, elected + 10, 2)], {"silence": 1})


def set_back_by_more_while_frozen() -> Case:
    """The machine's uptime shows the length of the silence."""
    journal = Journal(boot="1f0e5a2b").begin().live(600).lead(0, -1).wait(HOUR).set_clock(-2 * HOUR)
    journal.alive().live(100).lead(0, 2).live(10)
    elected = 700 + HOUR
    return Case(journal, [(0, 600, 1), (600, elected, -1), (elected, elected + 10, 2)], {"silence": 1})


def leaderless_since_an_unknown_time() -> Case:
    """The record of the loss has a stamp of 1970, and may be of any moment between two others."""
    journal = (
        Journal().begin().live(100).set_clock(TO_1970).wait(10).lead(0, -1).set_clock(0).wait(HOUR).alive().live(300)
    )
    journal.lead(0, 2).live(10)
    woken = 110 + HOUR
    states = [(0, 100, 1), (100, woken, None), (woken, woken + 300, -1), (woken + 300, woken + 310, 2)]
    return Case(journal, states, {"clock_not_believed": 1})


def recorder_frozen_while_leaderless() -> Case:
    """It finds a leader when it wakes, who may have led for most of the hour."""
    woken = 100 + HOUR
    return Case(
        freeze_while_leaderless(is_recorded=True).alive().lead(0, 2).live(20),
        [(0, 100, 1), (100, woken, None), (woken, woken + 20, 2)],
        {"silence": 1},
    )


def recorder_restarted_while_leaderless() -> Case:
    journal = freeze_while_leaderless(is_recorded=True).begin().live(20).lead(0, 2).live(10)
    elected = 120 + HOUR
    return Case(journal, [(0, 100, 1), (100, elected, -1), (elected, elected + 10, 2)])


def metadata_log_silent_while_leaderless() -> Case:
    """Its records have the times of their writes, whenever they are read."""
    journal = freeze_while_leaderless(is_recorded=True).lead(0, 2, correlation_id="1-@77-0").live(20)
    woken = 100 + HOUR
    return Case(journal, [(0, 100, 1), (100, woken, -1), (woken, woken + 20, 2)], {"silence": 1})


def slower_alive_interval() -> Case:
    journal = Journal(alive_s=300).begin().live(1200).lead(0, -1).live(1200)
    return Case(journal, [(0, 1200, 1), (1200, 2400, -1)])


def back_by_seconds() -> Case:
    journal = Journal().begin().live(100).lead(0, -1).set_clock(-5).wait(2).alive().live(10).lead(0, 2).live(100)
    return Case(journal, [(0, 100, 1), (100, 107, -1), (107, 207, 2)], {"clock_went_back": 1})


def back_by_minutes() -> Case:
    journal = Journal().begin().live(HOUR).lead(0, -1).set_clock(-300).live(60).lead(0, 2).live(HOUR)
    back = HOUR - 290
    states = [(0, back, 1), (back, back + 50, -1), (back + 50, back + 50 + HOUR, 2)]
    return Case(journal, states, {"clock_went_back": 1})


def ahead_for_half_an_hour() -> Case:
    journal = Journal().begin().live(HOUR).wait(20).begin(ahead_s=20 * HOUR).live(10).lead(0, -1).live(HOUR / 2)
    journal.wait(20).begin().live(HOUR)
    again = HOUR + 20 + 10 + HOUR / 2 + 20
    return Case(journal, [(0, HOUR, 1), (HOUR, again, None), (again, again + HOUR, -1)], {"clock_not_believed": 190})


def resign_late() -> Case:
    """The controller was frozen. It noticed that it had lost the role ten minutes after the next one had begun."""
    journal = Journal().begin().live(100).wait(600).resign().wait(-570).begin().live(100)
    return Case(journal, [(0, 100, 1), (100, 130, None), (130, 230, 1)])


def set_back_to_1970_before_resigning() -> Case:
    journal = Journal().begin().live(100).set_clock(TO_1970).resign().wait(5).begin().live(100)
    return Case(journal, [(0, 100, 1), (100, 105, None), (105, 205, 1)], {"clock_not_believed": 1})


def set_back_from_2255_before_resigning() -> Case:
    journal = Journal().begin().live(100).wait(5).alive(off_s=229 * 366 * 24 * HOUR).resign().wait(5).begin().live(100)
    return Case(journal, [(0, 100, 1), (100, 110, None), (110, 210, 1)], {"clock_not_believed": 1})


def set_back_by_seconds_before_resigning() -> Case:
    journal = Journal().begin().live(100).set_clock(-5).wait(2).resign().wait(10).begin().live(100)
    return Case(journal, [(0, 100, 1), (100, 112, None), (112, 212, 1)], {"clock_went_back": 1})


def two_clocks_that_differ_as_clocks_do() -> Case:
    journal = Journal().begin(ahead_s=20).live(100).resign().wait(5).begin().live(100)
    return Case(journal, [(20, 120, 1), (120, 205, 1)], {"clock_went_back": 1})


def delete_unseen_and_create_without_a_leader() -> Case:
    journal = Journal().begin().live(100).delete(0).wait(20).begin().live(50).create(0).live(100)
    return Case(journal, [(0, 100, 1), (100, 120, None), (170, 270, -1)])


def ask_while_cut_off() -> Case:
    """The controller knows nothing of the cluster for half an hour, and refuses a stranger's requests all the time."""
    journal = (
        Journal().begin().live(100).lead(0, -1).ask(30 * MINUTE, requests=180).alive().live(100).lead(0, 2).live(10)
    )
    woken = 100 + 30 * MINUTE
    return Case(journal, [(0, 100, 1), (100, woken + 100, -1), (woken + 100, woken + 110, 2)], {"silence": 1})


def flood_with_requests() -> Case:
    """More requests than a bucket of numbers has."""
    journal = Journal().begin().live(100).lead(0, -1).ask(30 * MINUTE, requests=140_000).alive().live(100)
    woken = 100 + 30 * MINUTE
    return Case(journal, [(0, 100, 1), (100, woken, None), (woken, woken + 100, -1)], {"silence": 1})


def ask_to_the_end() -> Case:
    return Case(Journal().begin().live(100).ask(HOUR, requests=400), [(0, 100, 1)])


def ask_between_signs_of_life() -> Case:
    journal = Journal().begin().ask(5).live(100).ask(3, requests=7).lead(0, -1).ask(2).alive().ask(1).resign()
    journal.wait(5).begin().ask(1).live(100)
    return Case(journal, [(0, 108, 1), (108, 217, -1)])


def ask_by_a_wrong_clock() -> Case:
    """Requests with stamps that are far ahead, or before 1971, beside records of a right clock."""
    journal = Journal().begin().live(100).ask(5, requests=5, off_s=40_000 * 366 * 24 * HOUR).lead(0, -1).live(100)
    journal.ask(5, requests=5, off_s=TO_1970).lead(0, 2).live(10)
    return Case(journal, [(0, 105, 1), (105, 210, -1), (210, 220, 2)], {"clock_went_back": 1})


CASES: Final[Mapping[str, Case]] = {
    build.__name__: build()
    for build in (
        ahead_and_dead, one_stamp_ahead, boot_in_1970, first_boot_in_1970, last_stamps_in_2038, recorder_frozen,
        recorder_blind, controller_frozen, slower_alive_interval, back_by_seconds, back_by_minutes, ahead_for_half_an_hour,
        resign_late, set_back_to_1970_before_resigning, set_back_from_2255_before_resigning,
        set_back_by_seconds_before_resigning, two_clocks_that_differ_as_clocks_do,
        delete_unseen_and_create_without_a_leader, ask_while_cut_off, flood_with_requests, ask_to_the_end,
        ask_between_signs_of_life, ask_by_a_wrong_clock, elect_after_a_missing_version, never_written_again,
        find_leaderless_in_the_next_term, find_led_in_the_next_term, lead_and_leave_unseen,
        find_leaderless_after_missing_records, replace_while_frozen, create_again_while_frozen, set_back_while_frozen,
        set_back_by_more_while_frozen, leaderless_since_an_unknown_time, recorder_frozen_while_leaderless,
        recorder_restarted_while_leaderless, metadata_log_silent_while_leaderless,
    )
}  # fmt: skip


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> Folded:
    return fold_journals(spark, {name: [case.journal.records] for name, case in CASES.items()})


@pytest.mark.parametrize("name", CASES)
def test_what_is_known_is_what_was_written_by_a_clock_that_can_be_believed(found: Folded, name: str) -> None:
    states = found.timelines[name][0]
    in_seconds = [(began / 1e6 - START_S, ended / 1e6 - START_S, leader) for began, ended, leader in states]
    assert in_seconds == merge_states(CASES[name].states)


def merge_states(states: Sequence[tuple[float, float, int | None]]) -> list[tuple[float, float, int | None]]:
    together: list[tuple[float, float, int | None]] = []
    for began, ended, leader in states:
        if together and together[-1][2] == leader:
            began = together.pop()[0]
        together.append((began, ended, leader))
    return together


@pytest.mark.parametrize("name", CASES)
def test_the_findings_say_what_was_not_believed(found: Folded, name: str) -> None:
    assert dict(found.findings[name]) == CASES[name].findings


def test_no_clock_makes_days_of_which_nobody_said_anything(found: Folded) -> None:
    assert max(found.days.values()) <= 3


def test_five_hours_in_which_nobody_looked_are_not_available(found: Folded) -> None:
    assert found.unknown_seconds["recorder_frozen"] == 2 * 5 * HOUR
    assert found.unknown_seconds["controller_frozen"] == 5 * HOUR, "of the partition with a leader"
    assert found.leaderless_seconds["controller_frozen"] == 5 * HOUR + 100
    assert found.leaderless_seconds["ahead_and_dead"] == 30 * MINUTE


def test_refused_requests_do_not_make_a_silent_controller_look_alive(found: Folded) -> None:
    assert found.unknown_seconds["flood_with_requests"] == 2 * 30 * MINUTE
    assert found.leaderless_seconds["flood_with_requests"] == 100
    assert found.unknown_seconds["ask_while_cut_off"] == 30 * MINUTE, "of the partition with a leader"
    assert found.leaderless_seconds["ask_while_cut_off"] == 30 * MINUTE + 100
