"""Reads one topic at a time, so that a topic without the shape of its format costs no other topic."""

from collections.abc import Callable
from dataclasses import replace

from kontroller.importing.declared import Declared
from kontroller.importing.sources.loading import Fields, Misshapen, Problem, find_repeated_keys


def read_or_report(place: str, source: Fields, read: Callable[[], Declared]) -> Declared | Problem:
    """Return a topic, or the reason why its source has none. A key that occurs twice is a fault of the topic."""
    try:
        declared = read()
    except Misshapen as error:
        return Problem(place, str(error))
    repeated = tuple(f"{key} occurs twice: keep one of them" for key in find_repeated_keys(source))
    return replace(declared, faults=(*declared.faults, *repeated))
