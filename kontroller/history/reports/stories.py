"""The facts of an episode, from which its story is written. Times are microseconds since 1970."""

from dataclasses import dataclass
from typing import Literal

Ending = Literal["change", "history", "period", "unknown"]
"""Another record ended it; the history ends; it lasts beyond the period; nothing is known from there on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """The end of a broker's registration. `at_us` is the time at which the controller noticed."""

    broker: int
    at_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The incidents of an episode with the same problem, cause and ending."""

    problem: str
    cause: str
    began_us: int
    """The beginning of the first of them."""
    ended_us: int
    """The end of the last of them, within the period."""
    incidents: int
    partitions: int
    where: str
    """Their topics and partitions in words, shortened if they are many."""
    longest_us: int
    """The duration of the longest of them, within the period."""
    ending: Ending
    ended_by: str = ""
    """The cause of what ended them, if something did."""
    led_by: tuple[int, ...] = ()
    """The leaders afterwards; empty if they are many or unknown, or if partitions had a leader all the time."""
    is_unclean: bool = False
    """True if those leaders were not in sync."""
    asked_by: str = ""
    """The client whose request was the cause, such as `User:alice from 10.0.0.7`. Empty if there is none."""
    gone: tuple[int, ...] = ()
    """The brokers that were missing in most of these incidents and were not registered."""
    out_of_sync: tuple[int, ...] = ()
    """The brokers that were missing in most of these incidents although they were registered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    losses: tuple[Loss, ...] = ()
    losses_total: int = 0
    outages: tuple[Outage, ...] = ()
    """The outages that cost the most time."""
    unclean: int = 0
    unclean_where: str = ""
    is_inferred: bool = False
    """True if the causes are guesses of a recorder."""
