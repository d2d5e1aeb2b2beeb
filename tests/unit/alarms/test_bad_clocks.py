"""Clocks that are ahead, behind, set, or in 1970: alarms are in time all the same, and there are no false ones."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kontroller.history.alarms.records import Rules, Seen
from tests.unit.alarms.watching import START_US, alive, lead, new_watch, see_all

TEN_HOURS = 36_000.0
IN_1970 = -START_US / 1e6


@pytest.mark.parametrize("bad", [TEN_HOURS, -TEN_HOURS, IN_1970])
def test_an_alarm_comes_in_time_though_one_stamp_before_it_was_wrong(bad: float) -> None:
    watch = new_watch()
    assert see_all(watch, alive(0, 0), alive(1, bad), alive(2, 10), lead(3, 12, -1)) == []
    assert see_all(watch, alive(4, 22), alive(5, 32), alive(6, 42)) == []
    assert see_all(watch, alive(7, 52)) == ["leaderless raised"]


@pytest.mark.parametrize("bad", [TEN_HOURS, -TEN_HOURS, IN_1970])
def test_one_wrong_stamp_during_trouble_moves_its_alarm_by_an_alive_interval_at_most(bad: float) -> None:
    watch = new_watch()
    assert see_all(watch, lead(0, 0, -1), alive(1, bad), alive(2, 20)) == []
    assert see_all(watch, alive(3, 30), alive(4, 40), alive(5, 50)) == ["leaderless raised"]


def test_a_short_trouble_does_not_become_a_long_one_by_a_stamp_that_is_ahead() -> None:
    watch = new_watch()
    assert see_all(watch, lead(0, 0, -1), alive(1, TEN_HOURS), lead(2, 1, 1), alive(3, 90), alive(4, 100)) == []


@pytest.mark.parametrize("behind", [-60.0, -TEN_HOURS, IN_1970, TEN_HOURS])
def test_a_controller_with_another_clock_takes_over_and_the_alarm_comes(behind: float) -> None:
    watch = new_watch()
    assert see_all(watch, lead(0, 0, -1), alive(1, 10)) == []
    terms = [alive(seq, behind + 12 + 10 * seq, epoch=2) for seq in range(4)]
    assert see_all(watch, *terms) == ["leaderless raised"]


def test_what_begins_under_a_slower_clock_is_told_of_too() -> None:
    watch = new_watch()
    see_all(watch, *(alive(seq, 10 * seq) for seq in range(100)))
    assert see_all(watch, alive(0, -500, epoch=2), lead(1, -499, -1, epoch=2)) == []
    assert see_all(watch, *(alive(seq, -499 + 10 * (seq - 1), epoch=2) for seq in range(2, 6))) == ["leaderless raised"]


def test_a_clock_that_is_set_back_again_and_again_only_delays() -> None:
    watch = new_watch()
    see_all(watch, lead(0, 0, -1))
    assert see_all(watch, *(alive(seq, 5.0 * (seq % 4)) for seq in range(1, 13))) == ["leaderless raised"]


def test_records_that_come_late_or_again_are_no_time() -> None:
    watch = new_watch()
    see_all(watch, lead(0, 0, -1), alive(1, 10))
    for _ in range(50):
        assert see_all(watch, alive(0, 0), alive(1, 10), lead(0, 0, -1)) == []
    assert see_all(watch, alive(2, 20), alive(3, 30), alive(4, 40)) == ["leaderless raised"]


def test_a_clock_that_was_wrong_moves_what_is_told_and_not_when() -> None:
    watch = new_watch()
    alarms = [a for one in (lead(0, IN_1970, -1), *(alive(s, 10 * s) for s in range(1, 7))) for a in watch.see(one)]
    assert [(alarm.problem, alarm.began_us) for alarm in alarms] == [("leaderless", 0)]


STEPS = st.lists(st.floats(min_value=0, max_value=10, allow_nan=False), min_size=1, max_size=40)


@given(steps=STEPS, bad=st.dictionaries(st.integers(0, 39), st.sampled_from([IN_1970, -60.0, 25.0, TEN_HOURS])))
def test_a_bad_stamp_moves_own_time_by_less_than_a_silence_and_an_interval(
    steps: list[float], bad: dict[int, float]
) -> None:
    watch, at, seen = new_watch(), 0.0, 0
    list(watch.see(alive(0, 0)))
    for seq, step in enumerate(steps, start=1):
        at += step
        stamp = at if bad.get(seq) is None else at + bad[seq]
        seen += seq in bad
        list(watch.see(Seen(controller_epoch=1, seq=seq, at_us=START_US + round(stamp * 1e6), kind="controller_alive")))
    own = watch.course.time.now_us / 1e6
    assert abs(own - at) <= 0.001 + seen * (30 + 10)


def test_rules_that_nobody_can_keep_are_refused() -> None:
    with pytest.raises(ValueError, match="less than 0 seconds"):
        Rules(leaderless_after_us=-1, under_min_isr_after_us=0, min_isr=1)
    with pytest.raises(ValueError, match="alive interval"):
        Rules(leaderless_after_us=0, under_min_isr_after_us=0, min_isr=1, alive_interval_us=10, silent_after_us=9)
