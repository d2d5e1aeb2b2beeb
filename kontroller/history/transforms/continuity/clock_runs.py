"""Decides which clocks to trust. Numbers give the order of records; timestamps are evidence that may be wrong.

The records of a cluster form *runs* in which the clock was steady. A run ends if the clock goes back, if nobody wrote
for long, or if nobody observed. If runs contradict their order, the trusted ones are those that fit one after another
and cover the most time: a timestamp ten hours ahead, a boot in 1970, or half an hour of a wrong clock covers less.

If both sides of a backward step cover much, both are trusted: a clock is set back to correct it, so the earlier run
ends where the next one begins.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

YEAR_US: Final = 366 * 86_400_000_000
"""A greater distance to the other runs is not a silence but the wrong clock of a machine."""
LAST_US: Final = 253_370_764_800_000_000
"""The year 9999. No clock is believed from there on, and no calendar goes much further."""


class Run(NamedTuple):
    """The beginning and end of a run by its own clock, in microseconds since 1970. The end is never before the
    beginning."""

    began_us: int
    ended_us: int

    @property
    def length_us(self) -> int:
        return self.ended_us - self.began_us


class Place(NamedTuple):
    """The possible times of a run's records. Timestamps outside count as the nearer bound.

    A run that is not trusted has no time: its records are placed at the end of those before them."""

    began_us: int
    ended_us: int
    is_believed: bool

    def clamp(self, time_us: int) -> int:
        return min(max(time_us, self.began_us), self.ended_us)


def place_runs(runs: Sequence[Run]) -> list[Place]:
    """Return a place for each run of a cluster. Runs are in the order of their records, and so are the places in time.

    >>> right, ten_hours_ahead, right_again = Run(0, 100), Run(36_000, 36_000), Run(101, 200)
    >>> [tuple(place) for place in place_runs([right, ten_hours_ahead, right_again])]
    [(0, 100, True), (100, 100, False), (101, 200, True)]
    """
    possible = [number for number, run in enumerate(runs) if run.ended_us < LAST_US]
    covering = [possible[index] for index in most_covering([runs[number] for number in possible])]
    believed = _drop_distant(dict(_clip(runs, covering)))
    at_us = next((run.began_us for run in believed.values()), 0)
    places = []
    for number in range(len(runs)):
        run = believed.get(number)
        places.append(Place(*run, is_believed=True) if run else Place(at_us, at_us, is_believed=False))
        at_us = places[-1].ended_us
    return places


class _Piece(NamedTuple):
    """A part of a run."""

    began_us: int
    ended_us: int
    number: int

    @property
    def length_us(self) -> int:
        return self.ended_us - self.began_us


_BEGIN: Final = attrgetter("began_us")


def most_covering(runs: Sequence[Run]) -> list[int]:
    """Return the numbers of the runs that fit one after another and cover the most time.

    An earlier run may end where the next one begins. Of equally good sequences the one with the latest runs is
    returned.

    This is patience sorting with lengths instead of cards. `pieces` has for each moment the run with which the most
    time up to it is covered. A run replaces as much of the later pieces as it is long, because it covers that amount
    sooner. Its predecessor is the piece before its beginning."""
    pieces: list[_Piece] = []
    before: list[int | None] = []
    for number, run in enumerate(runs):
        at = _cut(pieces, run.began_us)
        before.append(pieces[at - 1].number if at else None)
        rest_us, end = run.length_us, at
        while end < len(pieces) and pieces[end].length_us <= rest_us:
            rest_us -= pieces[end].length_us
            end += 1
        if end < len(pieces):
            pieces[end] = pieces[end]._replace(began_us=pieces[end].began_us + rest_us)
        pieces[at:end] = [_Piece(*run, number)]
    return [*_row(before, pieces[-1].number if pieces else None)][::-1]


def _cut(pieces: list[_Piece], at_us: int) -> int:
    """Cut the piece that contains this moment. Return the index of the first later piece."""
    at = bisect_left(pieces, at_us, key=_BEGIN)
    while at < len(pieces) and pieces[at].ended_us == at_us:  # a piece without length is over by then
        at += 1
    if at and pieces[at - 1].ended_us > at_us:
        cut = pieces[at - 1]
        pieces[at - 1 : at] = [cut._replace(ended_us=at_us), cut._replace(began_us=at_us)]
    return at


def _row(before: Sequence[int | None], last: int | None) -> Iterator[int]:
    while last is not None:
        yield last
        last = before[last]


def _clip(runs: Sequence[Run], row: Sequence[int]) -> Iterator[tuple[int, Run]]:
    """Return the runs of a sequence, each cut at the beginning of the next one, without those that become empty."""
    kept: list[tuple[int, Run]] = []
    next_us: int | None = None
    for number in reversed(row):
        began_us, ended_us = runs[number]
        if next_us is None or began_us <= next_us:
            kept.append((number, Run(began_us, ended_us if next_us is None else min(ended_us, next_us))))
            next_us = began_us
    return reversed(kept)


def _drop_distant(believed: dict[int, Run]) -> dict[int, Run]:
    """Return the runs on the side that covers more, if two neighbours are more than a year apart."""
    groups: list[dict[int, Run]] = []
    ended_us: int | None = None
    for number, run in believed.items():
        if ended_us is None or run.began_us - ended_us > YEAR_US:
            groups.append({})
        groups[-1][number] = run
        ended_us = run.ended_us
    return max(reversed(groups), key=lambda runs: sum(run.length_us for run in runs.values()), default={})
