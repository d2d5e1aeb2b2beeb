"""The windows of a plan, and the part of a history that each of them covers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

_LINE = re.compile(r"^((?:[:+ ] {2}|[:+]- )*)(.*)$")
_WINDOW = re.compile(r"Window \[.*?\], \[([^\[\]]*)\](?:, \[|$)")
_SUMS = re.compile(r"(?:Hash|ObjectHash|Sort)Aggregate\(keys?=\[([^\[\]]*)\]")
_OF_ALONE = {of: re.compile(rf"kind#\d+ (= {of}(_removed)?\)|IN \({of},{of}_removed\))") for of in ("topic", "broker")}
"""Conditions of filters."""
_PASSED_THROUGH = ("Project", "Filter", "Window", "Sort ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    keys: frozenset[str]
    """Names of the columns that say which rows are together, in one task."""
    is_over_alone: frozenset[str]
    """Contains "topic" if the rows are about topics alone and not about their partitions, "broker" if about brokers
    alone."""
    sums_by: frozenset[str]
    """The columns by which its rows are sums; none: they are no sums."""
    text: str


@dataclass(slots=True, kw_only=True)
class _Step:
    """A step of a plan, with the rows of the steps below it."""

    text: str
    below: "list[_Step]" = field(default_factory=list)


def windows(rows: DataFrame) -> list[Window]:
    """Return all windows of the plan by which Spark makes the rows. A part that occurs several times in the plan counts
    each time."""
    plan = str(rows._jdf.queryExecution().sparkPlan().toString())
    return [window for step in _steps(plan) if (window := _window(step)) is not None]


def _steps(plan: str) -> list[_Step]:
    """Return all steps of a plan, which is written as a tree, three characters deeper at each step."""
    steps: list[_Step] = []
    above: list[_Step] = []
    for line in plan.splitlines():
        found = _LINE.match(line)
        assert found is not None
        step, depth = _Step(text=found[2]), len(found[1]) // 3
        assert depth <= len(above), line
        if depth:
            above[depth - 1].below.append(step)
        above[depth:] = [step]
        steps.append(step)
    return steps


def _window(step: _Step) -> Window | None:
    found = _WINDOW.match(step.text)
    if found is None:
        assert not step.text.startswith("Window "), step.text
        return None
    inputs = list(_inputs(step))
    origin = next(below for below in inputs if not below.text.startswith(_PASSED_THROUGH))
    sums = _SUMS.match(origin.text)
    return Window(
        keys=_columns(found[1]),
        is_over_alone=frozenset(
            of
            for of, condition in _OF_ALONE.items()
            if any(below.text.startswith("Filter") and condition.search(below.text) for below in inputs)
        ),
        sums_by=_columns(sums[1]) if sums else frozenset(),
        text=step.text,
    )


def _inputs(step: _Step) -> Iterator[_Step]:
    """Return the steps that produce the rows, without joined inputs, up to the first union of several kinds of rows."""
    while step.below:
        yield step
        if step.text.startswith("Union"):
            return
        step = step.below[0]
    yield step


def _columns(names: str) -> frozenset[str]:
    return frozenset(name.partition("#")[0] for name in names.split(", ") if name)
