"""Reads one object at a time, so that one without the shape of its format costs no other object."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from kontroller.importing.declared import Declared
from kontroller.importing.declared_plans import DeclaredPlan
from kontroller.importing.sources.loading import Fields, Misshapen, Problem, find_repeated_keys

DeclaredT = TypeVar("DeclaredT", bound=Declared | DeclaredPlan)


def read_or_report(place: str, source: Fields, read: Callable[[], DeclaredT]) -> DeclaredT | Problem:
    """Return a topic or plan, or the reason why its source has none. A key that occurs twice is a fault of it."""
    try:
        declared = read()
    except Misshapen as error:
        return Problem(place, str(error))
    repeated = tuple(f"{key} occurs twice: keep one of them" for key in find_repeated_keys(source))
    return replace(declared, faults=(*declared.faults, *repeated))
