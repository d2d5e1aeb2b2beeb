"""Which clocks to believe. Numbers say in which order things happened; stamps are evidence, and may be wrong.

The records of a cluster fall into *runs*: in each the clock went on steadily. A run ends where the clock goes back, where
nobody wrote for long, or where nobody looked. Most runs follow one another in time as they do in order. Where they do not,
those are believed that fit one after the other and together cover the most time: one stamp that is ten hours ahead, a
machine that boots in 1970, or a controller whose clock is wrong for half an hour covers less than what it contradicts.

Where a clock was set back and both sides cover much, both are believed: whoever sets a clock back sets it right, so the run
before ends where the one after it begins.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

YEAR_US: Final = 366 * 86_400_000_000
"""What is further from the rest than this is no silence, but the clock of a machine that has none."""


class Run(NamedTuple):
    """When it began and ended by its own clock, in microseconds since 1970; it never ends before it begins."""

    began_us: int
    ended_us: int

    @property
    def length_us(self) -> int:
        return self.ended_us - self.began_us


class Place(NamedTuple):
    """When the records of a run may have been: a stamp that is earlier or later counts as the nearer bound.

    A run that is not believed has no time: its records are where those before them end."""

    began_us: int
    ended_us: int
    is_believed: bool

    def bounded(self, time_us: int) -> int:
        return min(max(time_us, self.began_us), self.ended_us)


def placed(runs: Sequence[Run]) -> list[Place]:
    """A place for each run of a cluster; the runs are in the order of their records, and so are the places in time.

    >>> right, ten_hours_ahead, right_again = Run(0, 100), Run(36_000, 36_000), Run(101, 200)
    >>> [tuple(place) for place in placed([right, ten_hours_ahead, right_again])]
    [(0, 100, True), (100, 100, False), (101, 200, True)]
    """
    believed = _without_the_far(dict(_clipped(runs, most_covering(runs))))
    at_us = next((run.began_us for run in believed.values()), 0)
    places = []
    for number in range(len(runs)):
        run = believed.get(number)
        places.append(Place(*run, is_believed=True) if run else Place(at_us, at_us, is_believed=False))
        at_us = places[-1].ended_us
    return places


class _Piece(NamedTuple):
    """Part of a run."""

    began_us: int
    ended_us: int
    number: int

    @property
    def length_us(self) -> int:
        return self.ended_us - self.began_us


_BEGIN: Final = attrgetter("began_us")


def most_covering(runs: Sequence[Run]) -> list[int]:
    """The numbers of the runs that fit one after the other and cover the most time, where an earlier one may end when the
    next begins. Of several such rows the one whose runs are the latest in order.

    This is patience sorting with lengths instead of cards. `pieces` say for each moment with which run the most time up to
    it is covered. A run takes the place of as much as it is long of what is later than its begin: with it that much is
    covered sooner. What it comes after in its row is whatever was there before its begin."""
    pieces: list[_Piece] = []
    before: list[int | None] = []
    for number, run in enumerate(runs):
        at = _split(pieces, run.began_us)
        before.append(pieces[at - 1].number if at else None)
        rest_us, end = run.length_us, at
        while end < len(pieces) and pieces[end].length_us <= rest_us:
            rest_us -= pieces[end].length_us
            end += 1
        if end < len(pieces):
            pieces[end] = pieces[end]._replace(began_us=pieces[end].began_us + rest_us)
        pieces[at:end] = [_Piece(*run, number)]
    return [*_row(before, pieces[-1].number if pieces else None)][::-1]


def _split(pieces: list[_Piece], at_us: int) -> int:
    """Cuts the piece that this moment is in. Returns the place of the first that is later."""
    at = bisect_left(pieces, at_us, key=_BEGIN)
    while at < len(pieces) and pieces[at].ended_us == at_us:  # without length: it is over by then
        at += 1
    if at and pieces[at - 1].ended_us > at_us:
        cut = pieces[at - 1]
        pieces[at - 1 : at] = [cut._replace(ended_us=at_us), cut._replace(began_us=at_us)]
    return at


def _row(before: Sequence[int | None], last: int | None) -> Iterator[int]:
    while last is not None:
        yield last
        last = before[last]


def _clipped(runs: Sequence[Run], row: Sequence[int]) -> Iterator[tuple[int, Run]]:
    """The runs of a row, each as far as to where the next one begins; without those that have nothing left."""
    kept: list[tuple[int, Run]] = []
    next_us: int | None = None
    for number in reversed(row):
        began_us, ended_us = runs[number]
        if next_us is None or began_us <= next_us:
            kept.append((number, Run(began_us, ended_us if next_us is None else min(ended_us, next_us))))
            next_us = began_us
    return reversed(kept)


def _without_the_far(believed: dict[int, Run]) -> dict[int, Run]:
    """Where there is more than a year between two of them, those on the side that covers more."""
    groups: list[dict[int, Run]] = []
    ended_us: int | None = None
    for number, run in believed.items():
        if ended_us is None or run.began_us - ended_us > YEAR_US:
            groups.append({})
        groups[-1][number] = run
        ended_us = run.ended_us
    return max(reversed(groups), key=lambda runs: sum(run.length_us for run in runs.values()), default={})
