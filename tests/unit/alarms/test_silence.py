"""Alarms are raised even if nothing is written, which is when they matter most. An old history is not waited for."""

from tests.unit.alarms.watching import alive, lead, new_watch, see_all, wait_seconds


def test_trouble_is_told_of_though_its_record_was_the_last_one() -> None:
    watch = new_watch()
    see_all(watch, alive(0, 0), lead(1, 5, -1))
    assert wait_seconds(watch, 29) == []
    assert wait_seconds(watch, 2) == ["leaderless raised", "silent raised"]


def test_time_that_was_waited_is_not_counted_again_by_the_record_that_ends_it() -> None:
    watch = new_watch()
    see_all(watch, lead(0, 0, -1))
    assert wait_seconds(watch, 9) == []
    assert see_all(watch, alive(1, 10)) == []
    assert wait_seconds(watch, 9) == []
    assert see_all(watch, alive(2, 20), alive(3, 30)) == []
    assert wait_seconds(watch, 1) == ["leaderless raised"]


def test_a_cluster_of_which_nothing_comes_is_silent_once_and_until_something_comes() -> None:
    watch = new_watch()
    see_all(watch, alive(0, 0), alive(1, 10))
    assert wait_seconds(watch, 30) == []
    assert wait_seconds(watch, 1) == ["silent raised"]
    assert wait_seconds(watch, 3600) == []
    (alarm,) = watch.see(alive(2, 3700))
    assert (alarm.topic, alarm.partition, alarm.problem, alarm.state) == (None, None, "silent", "cleared")
    assert wait_seconds(watch, 30) == []
    assert wait_seconds(watch, 1) == ["silent raised"]


def test_what_comes_again_or_from_a_controller_before_does_not_end_a_silence() -> None:
    watch = new_watch()
    see_all(watch, alive(7, 0, epoch=2))
    assert wait_seconds(watch, 31) == ["silent raised"]
    assert see_all(watch, alive(7, 0, epoch=2), alive(6, 0, epoch=2), alive(900, 40, epoch=1)) == []
    assert see_all(watch, alive(8, 45, epoch=2)) == ["silent cleared"]


def test_an_old_history_has_no_silence_and_the_same_alarms_each_time() -> None:
    history = [alive(0, 0), lead(1, 5, -1), alive(2, 7200), lead(3, 7201, 1), lead(4, 7202, -1)]
    history += [alive(seq, 7202 + 10 * (seq - 4)) for seq in range(5, 10)]
    first, again = new_watch(), new_watch()
    assert see_all(first, *history) == ["leaderless raised"]
    assert [list(first.see(one)) for one in history] == [[] for _ in history]
    assert see_all(again, *history) == ["leaderless raised"]


def test_nothing_is_known_of_a_cluster_before_its_first_record_but_that_it_is_silent() -> None:
    watch = new_watch()
    assert wait_seconds(watch, 31) == ["silent raised"]
    assert see_all(watch, lead(0, 0, -1)) == ["silent cleared"]
    assert wait_seconds(watch, 30) == []
    assert wait_seconds(watch, 1) == ["leaderless raised", "silent raised"]
