"""What is told of while nothing is written, which is when it matters most; and that an old history is not waited for."""

from tests.unit.alarms.watching import alive, led, new_watch, told, waited


def test_trouble_is_told_of_though_its_record_was_the_last_one() -> None:
    watch = new_watch()
    told(watch, alive(0, 0), led(1, 5, -1))
    assert waited(watch, 29) == []
    assert waited(watch, 2) == ["leaderless raised", "silent raised"]


def test_time_that_was_waited_is_not_counted_again_by_the_record_that_ends_it() -> None:
    watch = new_watch()
    told(watch, led(0, 0, -1))
    assert waited(watch, 9) == []
    assert told(watch, alive(1, 10)) == []
    assert waited(watch, 9) == []
    assert told(watch, alive(2, 20), alive(3, 30)) == []
    assert waited(watch, 1) == ["leaderless raised"]


def test_a_cluster_of_which_nothing_comes_is_silent_once_and_until_something_comes() -> None:
    watch = new_watch()
    told(watch, alive(0, 0), alive(1, 10))
    assert waited(watch, 30) == []
    assert waited(watch, 1) == ["silent raised"]
    assert waited(watch, 3600) == []
    (alarm,) = watch.see(alive(2, 3700))
    assert (alarm.topic, alarm.partition, alarm.problem, alarm.state) == (None, None, "silent", "cleared")
    assert waited(watch, 30) == []
    assert waited(watch, 1) == ["silent raised"]


def test_what_comes_again_or_from_a_controller_before_does_not_end_a_silence() -> None:
    watch = new_watch()
    told(watch, alive(7, 0, epoch=2))
    assert waited(watch, 31) == ["silent raised"]
    assert told(watch, alive(7, 0, epoch=2), alive(6, 0, epoch=2), alive(900, 40, epoch=1)) == []
    assert told(watch, alive(8, 45, epoch=2)) == ["silent cleared"]


def test_an_old_history_has_no_silence_and_the_same_alarms_each_time() -> None:
    history = [alive(0, 0), led(1, 5, -1), alive(2, 7200), led(3, 7201, 1), led(4, 7202, -1)]
    history += [alive(seq, 7202 + 10 * (seq - 4)) for seq in range(5, 10)]
    first, again = new_watch(), new_watch()
    assert told(first, *history) == ["leaderless raised"]
    assert [list(first.see(one)) for one in history] == [[] for _ in history]
    assert told(again, *history) == ["leaderless raised"]


def test_nothing_is_known_of_a_cluster_before_its_first_record_but_that_it_is_silent() -> None:
    watch = new_watch()
    assert waited(watch, 31) == ["silent raised"]
    assert told(watch, led(0, 0, -1)) == ["silent cleared"]
    assert waited(watch, 30) == []
    assert waited(watch, 1) == ["leaderless raised", "silent raised"]
