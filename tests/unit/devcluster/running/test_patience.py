"""A wait ends after silence, not at a time, and a machine's own delays are not silence."""

import pytest

from devcluster.running.patience import LONGEST_WAIT_S, Patience, Progress, pause_s


class Machine:
    """A clock that moves only in pauses and looks, processors that are wanted or not, and one server's progress."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.moves_every_s = float("inf")
        self.moves_in_looks = 0
        self.crowding = 1.0
        self.wakes_late_s = 0.0
        self.look_s = 0.0

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds + self.wakes_late_s

    def progress(self) -> Progress:
        return [("log", int((self.now_s - 1000) / self.moves_every_s) + self.moves_in_looks)]

    def wait(self, silence_s: float = 30, *, longest_s: float | None = None) -> tuple[float, int, str]:
        """Looks in vain until patience ends: the seconds that took, the looks, and the reason."""
        patience = Patience(
            silence_s,
            self.progress,
            longest_s=longest_s,
            now_s=lambda: self.now_s,
            sleep=self.sleep,
            crowding=lambda: self.crowding,
        )
        looks = 0
        while True:
            self.now_s += self.look_s
            self.moves_in_looks += 1 if self.moves_in_looks else 0
            looks += 1
            if complaint := patience.pause():
                return self.now_s - 1000, looks, complaint


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_a_hung_server_is_given_up_after_the_silence(machine: Machine) -> None:
    took_s, looks, complaint = machine.wait()
    assert took_s == pytest.approx(30, abs=0.2)
    assert looks > 500
    assert "without progress for 30 s (of 30); progress: log 0; CPU pressure: " in complaint


def test_a_server_that_makes_progress_is_waited_for_up_to_the_limit_of_all_waits(machine: Machine) -> None:
    machine.moves_every_s = 25
    assert machine.wait()[0] == pytest.approx(LONGEST_WAIT_S, abs=0.2)
    assert machine.wait(longest_s=3)[0] == pytest.approx(LONGEST_WAIT_S + 3, abs=0.2)


def test_progress_that_comes_too_rarely_is_no_reason_to_go_on(machine: Machine) -> None:
    machine.moves_every_s = 35
    assert machine.wait()[0] == pytest.approx(30, abs=0.2)


def test_a_wait_may_allow_more_silence_than_the_limit_of_all_waits(machine: Machine) -> None:
    assert machine.wait(1800)[0] == pytest.approx(1800, abs=0.2)


def test_what_moves_during_a_look_is_not_progress(machine: Machine) -> None:
    machine.moves_in_looks = 1
    assert machine.wait()[0] == pytest.approx(30, abs=0.2)


def test_time_counts_less_while_processors_are_wanted(machine: Machine) -> None:
    machine.crowding = 4.0
    assert machine.wait()[0] == pytest.approx(120, abs=0.2)


def test_a_machine_that_stands_still_gets_its_looks_all_the_same(machine: Machine) -> None:
    """It sleeps for 40 s instead of 50 ms: that is one look, not the end."""
    machine.wakes_late_s = 40
    _, looks, complaint = machine.wait(1.0)
    assert looks > 15, complaint


def test_long_looks_count_for_a_few_seconds_each(machine: Machine) -> None:
    """A command that takes 60 s on a starved machine is tried several times."""
    machine.look_s = 60
    assert machine.wait()[1] == 5


def test_a_wait_takes_a_third_of_the_time_for_looks_at_most_and_looks_not_too_rarely() -> None:
    assert pause_s(0.0) == pause_s(0.001)
    assert pause_s(0.4) == pytest.approx(0.8)
    assert pause_s(60.0) == pause_s(1.0) == pytest.approx(2.0)
