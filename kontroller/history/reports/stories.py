"""What is known of an episode, as the few plain facts that a sentence is made of. Times are microseconds since 1970."""

from dataclasses import dataclass
from typing import Literal

Ending = Literal["change", "history", "period", "unknown"]
"""By another record; with the history; after the period; nobody knows, as nothing is known from there on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The registration of a broker ended; `at_us` is when the controller heard of it."""

    broker: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The incidents of an episode that had the same problem, cause and ending."""

    problem: str
    cause: str
    began_us: int
    """The first of them."""
    ended_us: int
    """The last of them, within the period."""
    incidents: int
    partitions: int
    where: str
    """Their topics and partitions in words; cut where they are many."""
    longest_us: int
    """Within the period."""
    ending: Ending
    ended_by: str = ""
    """The cause of what ended them, where something did."""
    led_by: tuple[int, ...] = ()
    """The brokers that led afterwards; none where they are many or not known, or where partitions were led all along."""
    is_unclean: bool = False
    """Those were not in sync."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    losses: tuple[Loss, ...] = ()
    losses_total: int = 0
    outages: tuple[Outage, ...] = ()
    """Those that cost most time."""
    unclean: int = 0
    unclean_where: str = ""
    is_inferred: bool = False
    """Somebody who only looked on has guessed the causes."""
