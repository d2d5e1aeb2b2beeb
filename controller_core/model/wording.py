"""Words for numbers of things, in the messages that people read: short, and with complete counts."""

from collections.abc import Collection, Iterable
from typing import Final

MOST_NAMED: Final = 5
"""How many things a line of text names unless it is said; it counts all of them."""


def listed(things: Iterable[object], most: int = MOST_NAMED) -> str:
    """The first few of many, and how many more there are; empty where there are none."""
    every = [str(thing) for thing in things]
    named = ", ".join(every[:most])
    return f"{named} and {len(every) - most} more" if len(every) > most else named


def name_all(noun: str, things: Collection[object]) -> str:
    """Such as `broker 3`, `brokers 3, 4`, `brokers 1, 2, 3, 4, 5 and 7 more`."""
    return f"{noun if len(things) == 1 else f'{noun}s'} {listed(things)}"


def shortened(text: str, limit: int) -> str:
    """The text, with dots for its end if it has more characters than the limit."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def counted(count: int, noun: str) -> str:
    """Such as `1 partition`, `2 partitions`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
