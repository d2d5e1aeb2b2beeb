"""The period of a page, and the grid of equal pieces for its pictures.

From here on, times are integers: microseconds since 1970 (UTC). Spark would convert instants to this machine's local
time, and integer sums do not depend on their order.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

MOST_DAYS = 36_500
"""The days of the longest period that a user can ask for. The work and the page grow with the days."""
WIDTHS = tuple(
    [n * SECOND for n in (1, 2, 5, 10, 15, 30)]
    + [n * MINUTE for n in (1, 2, 5, 10, 15, 30)]
    + [n * HOUR for n in (1, 2, 3, 4, 6, 12)]
    + [n * DAY for n in (1, 2, 4, 7, 14, 28, 56, 112, 224, 448)]
)
"""The widths of pieces, in round numbers."""


def micros(moment: datetime) -> int:
    """Return the microseconds since 1970. Raises ValueError for a time without a zone."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone: give the period in UTC, as datetime(..., tzinfo=UTC)")
    return (moment - EPOCH) // timedelta(microseconds=1)


_FIRST_US = (datetime.min.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
_LAST_US = (datetime.max.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


def is_moment(at_us: int) -> bool:
    """Return True if the calendar has this time: it has the years 1 to 9999."""
    return _FIRST_US <= at_us <= _LAST_US


def moment_of(at_us: int) -> datetime:
    return EPOCH + timedelta(microseconds=at_us)


def add_margins(began_us: int, until_us: int) -> tuple[int, int]:
    """Return the ends of a picture, in microseconds, with a margin on both sides and a length of at least ten
    seconds."""
    air = max((until_us - began_us) // 20, 5 * SECOND - (until_us - began_us) // 2, SECOND)
    return began_us - air, until_us + air


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period [began, ended) with time zones. Raises ValueError if it is empty."""

    began: datetime
    ended: datetime

    def __post_init__(self) -> None:
        if micros(self.began) >= micros(self.ended):
            raise ValueError(f"The period {self.began} to {self.ended} is empty: it must begin before it ends")

    @property
    def began_us(self) -> int:
        return micros(self.began)

    @property
    def ended_us(self) -> int:
        return micros(self.ended)

    def make_previous(self) -> "Period | None":
        """Return the previous period of the same length, or None if it would begin before 1970."""
        began_us = 2 * self.began_us - self.ended_us
        return None if began_us < 0 else Period(began=moment_of(began_us), ended=self.began)

    @property
    def partial_days_us(self) -> tuple[tuple[int, int], ...]:
        """The parts of days that the period does not cover completely: none, one, or two at its ends."""
        first_midnight, last_midnight = -(-self.began_us // DAY) * DAY, self.ended_us // DAY * DAY
        # The period lies within one day.
        if first_midnight > last_midnight:
            return ((self.began_us, self.ended_us),)
        ends = ((self.began_us, first_midnight), (last_midnight, self.ended_us))
        return tuple((began, ended) for began, ended in ends if began < ended)

    @property
    def first_day(self) -> date:
        return moment_of(self.began_us).date()

    @property
    def last_day(self) -> date:
        """The last day that the period touches."""
        return moment_of(self.ended_us - 1).date()


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Equal pieces of time, counted from 0, that cover a period. They begin at multiples of their width."""

    began_us: int
    width_us: int
    count: int

    @property
    def ended_us(self) -> int:
        return self.began_us + self.count * self.width_us

    def edges(self, index: int) -> tuple[int, int]:
        return self.began_us + index * self.width_us, self.began_us + (index + 1) * self.width_us


def grid_of(began_us: int, ended_us: int, *, most: int, least_us: int = SECOND) -> Grid:
    """Return the finest grid of round widths with at most `most` pieces."""
    for width in WIDTHS:
        if width < least_us:
            continue
        first, end = began_us // width, -(-ended_us // width)
        if end - first <= most or width == WIDTHS[-1]:
            break
    return Grid(began_us=first * width, width_us=width, count=min(end - first, most))
