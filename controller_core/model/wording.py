"""Wording of lists, counts and times in messages: short lists, complete counts."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

MOST_NAMED: Final = 5
"""The default number of things that a line of text names. It counts all of them."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def list_some(things: Iterable[object], most: int = MOST_NAMED) -> str:
    """List the first few of many things, and the number of the others; empty if there are none."""
    every = [str(thing) for thing in things]
    named = ", ".join(every[:most])
    return f"{named} and {len(every) - most} more" if len(every) > most else named


def name_all(noun: str, things: Collection[object]) -> str:
    """Name things by their noun: `broker 3`, `brokers 3, 4`, `brokers 1, 2, 3, 4, 5 and 7 more`."""
    return f"{noun if len(things) == 1 else f'{noun}s'} {list_some(things)}"


def name_subject(noun: str, things: Collection[object]) -> str:
    """Name things with their verb: `broker 3 is`, `brokers 3, 4 are`."""
    return f"{name_all(noun, things)} {'is' if len(things) == 1 else 'are'}"


def explain_controller_as_replica(controller: object) -> str:
    """Explain why no replica can be placed on the controller, which looks like a broker to clients."""
    return f"{controller} is the controller, which holds no replicas: name a broker"


def shorten(text: str, limit: int) -> str:
    """Return the text; if it is longer than the limit, dots replace its end."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def format_count(count: int, noun: str) -> str:
    """Count things: `1 partition`, `2 partitions`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def format_utc(time_us: int) -> str:
    """Return a time in microseconds since 1970, also one that no calendar has: a clock can show any time."""
    try:
        return f"{_EPOCH + timedelta(microseconds=time_us):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return f"{time_us} µs after 1970"
