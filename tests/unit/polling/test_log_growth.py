"""Changes that the controllers' log shows among its regular growth."""

import random
from collections.abc import Callable, Iterator

import pytest

from controller_core.polling.log_growth import LogGrowth


def idle(began_s: float = 0.13, every_s: float = 0.5) -> Callable[[float], int]:
    """Return the end of a log that only grows regularly, by time."""
    return lambda now_s: int((now_s - began_s) / every_s) + 1_000


def draw_times(random_: random.Random, count: int) -> Iterator[float]:
    now_s = 5.0
    for _ in range(count):
        now_s += random_.uniform(0.3, 0.5)
        yield now_s


@pytest.mark.parametrize("seed", range(20))
def test_an_idle_log_tells_of_nothing_however_late_brokers_hear_of_it(seed: int) -> None:
    random_, growth, end = random.Random(seed), LogGrowth(), idle()
    assert not any(
        growth.is_of_changes(end(now_s - random_.uniform(0, 0.15)), now_s) for now_s in draw_times(random_, 500)
    )


@pytest.mark.parametrize("seed", range(20))
def test_one_change_is_told_of_once_and_soon(seed: int) -> None:
    random_, growth, end = random.Random(seed), LogGrowth(), idle()
    told = [
        number
        for number, now_s in enumerate(draw_times(random_, 200))
        if growth.is_of_changes(end(now_s) + (1 if number >= 100 else 0), now_s)
    ]
    assert len(told) == 1
    assert 100 <= told[0] < 112


@pytest.mark.parametrize("seed", range(20))
def test_a_change_that_follows_at_once_when_another_was_told_of_is_told_of_as_soon(seed: int) -> None:
    random_, growth, end = random.Random(seed), LogGrowth(), idle()
    changes, changed_at, waits = 0, 100, []
    for number, now_s in enumerate(draw_times(random_, 400)):
        if growth.is_of_changes(end(now_s - random_.uniform(0, 0.15)) + changes, now_s) and number >= changed_at:
            waits.append(number - changed_at)
            changed_at = number + 1
        if number + 1 == changed_at:
            changes += 1
    assert changed_at > 350, "none was passed over"
    assert len(waits) > 100
    assert sorted(waits)[-len(waits) // 10] < 5, "asks of a third of a second each"


def test_a_pause_of_the_controllers_hides_no_later_change() -> None:
    random_, growth, end = random.Random(1), LogGrowth(), idle()
    told = [
        number
        for number, now_s in enumerate(draw_times(random_, 200))
        if growth.is_of_changes(end(now_s) - (7 if number >= 50 else 0) + (1 if number >= 150 else 0), now_s)
    ]
    assert len(told) == 1
    assert told[0] >= 150


def test_a_log_that_has_nothing_by_itself_tells_of_each_change() -> None:
    growth = LogGrowth()
    positions = [50] * 100 + [53] * 100
    told = [number for number, end in enumerate(positions) if growth.is_of_changes(end, number * 0.4)]
    assert told == [100]
