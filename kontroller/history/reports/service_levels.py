"""The service level: lost time in rolling windows, burn rates, and the outlook of the error budget.

Partition time is counted in whole microseconds and compared as fractions, so nothing is rounded before it is shown.
Unknown time gives two bounds of each figure: as if all of it was up, and as if all of it was down.

A burn rate is the lost part of a window over the part that the objective allows: at 1, the budget of 28 days lasts 28
days. ALERTS are those of Google's SRE workbook (multiwindow, multi-burn-rate): a rate counts while it is exceeded in a
long window and in a short one, so that it ends soon after the loss has ended.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Final

from kontroller.history.reports.period import DAY, HOUR, MINUTE
from kontroller.history.reports.tones import Tone

BUDGET_US: Final = 28 * DAY
"""The window of the error budget."""
RECENT_US: Final = 3 * DAY
"""The window whose losses an outlook continues."""
Span = tuple[Fraction, Fraction]
"""The least and the most that a figure can have been."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Partition time, in microseconds. `known_us` includes `lost_us`, the time without a leader."""

    known_us: int = 0
    unknown_us: int = 0
    lost_us: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(
            known_us=self.known_us + other.known_us,
            unknown_us=self.unknown_us + other.unknown_us,
            lost_us=self.lost_us + other.lost_us,
        )

    @property
    def total_us(self) -> int:
        return self.known_us + self.unknown_us

    @property
    def most_lost_us(self) -> int:
        """The lost time if all unknown time was down."""
        return self.lost_us + self.unknown_us

    @property
    def lost_share(self) -> Span | None:
        """None if there was no partition."""
        if self.total_us <= 0:
            return None
        return Fraction(self.lost_us, self.total_us), Fraction(self.most_lost_us, self.total_us)

    @property
    def availability(self) -> tuple[float, float] | None:
        share = self.lost_share
        return None if share is None else (float(1 - share[1]), float(1 - share[0]))

    def compute_spent(self, allowance: Fraction) -> Span | None:
        """Return the spent part of the budget, which is also the burn rate of a window."""
        share = self.lost_share
        return None if share is None else (share[0] / allowance, share[1] / allowance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """A burn rate that is too high if both windows exceed it."""

    window_us: int
    short_us: int
    rate: Fraction
    tone: Tone


ALERTS: Final = (
    Alert(window_us=HOUR, short_us=5 * MINUTE, rate=Fraction(144, 10), tone="bad"),
    Alert(window_us=6 * HOUR, short_us=30 * MINUTE, rate=Fraction(6), tone="bad"),
    Alert(window_us=3 * DAY, short_us=6 * HOUR, rate=Fraction(1), tone="warn"),
)
WINDOWS: Final = tuple(sorted({BUDGET_US, *(us for each in ALERTS for us in (each.window_us, each.short_us))}))
"""The lengths of all windows that are measured, shortest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnRate:
    """The burn rate of an alert's long window. `tone` is unknown if only unknown time can have exceeded the rate."""

    alert: Alert
    rate: Span | None
    tone: Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """Amounts of equal pieces of time without a gap. The last one ends at `ended_us`. `width_us` divides BUDGET_US."""

    ended_us: int
    width_us: int
    amounts: tuple[Amount, ...]

    @property
    def in_window(self) -> int:
        return BUDGET_US // self.width_us

    def sum_windows(self) -> Iterator[tuple[int, Amount]]:
        """Yield the end of each piece with the sum of the BUDGET_US before it."""
        known = unknown = lost = 0
        first_us = self.ended_us - len(self.amounts) * self.width_us
        for index, new in enumerate(self.amounts):
            old = self.amounts[index - self.in_window] if index >= self.in_window else Amount()
            known += new.known_us - old.known_us
            unknown += new.unknown_us - old.unknown_us
            lost += new.lost_us - old.lost_us
            yield first_us + (index + 1) * self.width_us, Amount(known_us=known, unknown_us=unknown, lost_us=lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """The service level of a cluster at `as_of_us`. `cluster` is "" for the sum of all clusters."""

    cluster: str
    as_of_us: int
    """The last known time, or the end of the period if the cluster has been silent for long."""
    began_us: int
    """The beginning of its history, or of the budget's window if that is later."""
    windows: Mapping[int, Amount]
    """By the lengths of WINDOWS."""
    pieces: Pieces | None = None
    """Only of clusters that are drawn, and of the sum."""

    @property
    def budget(self) -> Amount:
        return self.windows[BUDGET_US]

    @property
    def recent_us(self) -> int:
        """The length of the recent window within the history."""
        return max(1, min(RECENT_US, self.as_of_us - self.began_us))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """The times at which the budget was or will be used up. Both are None if it lasts at the rate of recent losses."""

    used_up_us: int | None = None
    """Since this time it is used up without interruption."""
    is_used_up_earlier: bool = False
    """True if it was used up before the earliest time that was measured, `used_up_us`."""
    runs_out_us: int | None = None


def rate_burns(level: Level, allowance: Fraction) -> tuple[BurnRate, ...]:
    """Return the burn rates of ALERTS."""
    return tuple(_rate_burn(level, alert, allowance) for alert in ALERTS)


def _rate_burn(level: Level, alert: Alert, allowance: Fraction) -> BurnRate:
    rates = [level.windows[us].compute_spent(allowance) for us in (alert.window_us, alert.short_us)]
    known = [rate for rate in rates if rate is not None]
    if len(known) < len(rates):
        return BurnRate(alert=alert, rate=rates[0], tone="unknown")
    is_exceeded, may_be_exceeded = (all(rate[side] >= alert.rate for rate in known) for side in (0, 1))
    tone: Tone = alert.tone if is_exceeded else "unknown" if may_be_exceeded else "good"
    return BurnRate(alert=alert, rate=rates[0], tone=tone)


def foresee(level: Level, allowance: Fraction, *, is_unknown_down: bool) -> Outlook | None:
    """Return the outlook of the budget if the losses of the last three days go on. None without pieces.

    Earlier losses leave the window as time passes. `is_unknown_down`: count unknown time as lost."""
    pieces = level.pieces
    if pieces is None or not pieces.amounts:
        return None

    def compute_rest(amount: Amount) -> Fraction:
        return allowance * amount.total_us - (amount.most_lost_us if is_unknown_down else amount.lost_us)

    windows = [(at_us, compute_rest(amount)) for at_us, amount in pieces.sum_windows() if amount.total_us > 0]
    if not windows:
        return Outlook()
    if windows[-1][1] < 0:
        return _find_use(windows)
    gain = compute_rest(level.windows[RECENT_US]) * pieces.width_us / level.recent_us
    return _look_ahead(pieces, windows[-1][1], gain, compute_rest)


def _find_use(windows: Sequence[tuple[int, Fraction]]) -> Outlook:
    """Return the time since which the rest is negative. Between two measured times it changes in proportion."""
    for (after_us, after), (before_us, before) in pairwise(reversed(windows)):
        if before >= 0:
            return Outlook(used_up_us=before_us + int((after_us - before_us) * before / (before - after)))
    return Outlook(used_up_us=windows[0][0], is_used_up_earlier=True)


def _look_ahead(pieces: Pieces, rest: Fraction, gain: Fraction, compute_rest: Callable[[Amount], Fraction]) -> Outlook:
    empty = Amount()
    missing = max(0, pieces.in_window - len(pieces.amounts))
    oldest = [*[empty] * missing, *pieces.amounts[-pieces.in_window :]]
    for number, amount in enumerate(oldest):
        after = rest + gain - compute_rest(amount)
        if after < 0:
            part = Fraction(number) + (rest / (rest - after) if rest > after else 0)
            return Outlook(runs_out_us=pieces.ended_us + int(part * pieces.width_us))
        rest = after
    return Outlook()
